//! A run on GitHub: what it is about, what its runner is told, and the one comment that its pull request gets. Nothing here
//! decides, and nothing that fails here changes a verdict.

mod client;
pub mod commands;
mod context;
mod fault;
mod limit;
mod marker;
mod pace;
mod place;
mod publish;
mod pull;
mod sticky;
mod token;

pub use context::{Context, Event, FileCommands, is_runner, refuse_privileged};
pub use pace::Pace;
pub use place::{Place, Said, place};
pub use publish::{BUDGET, CommentPolicy, Destination, Published, publish, publish_at};
pub use pull::Head;
pub use token::Token;
