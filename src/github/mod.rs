//! GitHub's API: the one comment a pull request gets. Nothing here decides, and nothing that fails here changes a verdict.

mod publish;
mod token;

pub use publish::{CommentPolicy, Destination, Published, publish};
pub use token::Token;
