//! GitHub's API: the one comment a pull request gets. Nothing here decides, and nothing that fails here changes a verdict.

mod client;
mod fault;
mod limit;
mod marker;
mod pace;
mod place;
mod publish;
mod pull;
mod sticky;
mod token;

pub use pace::Pace;
pub use place::{Place, Said, place};
pub use publish::{BUDGET, CommentPolicy, Destination, Published, publish, publish_at};
pub use pull::Head;
pub use token::Token;
