//! What the blocks of a config cost: each is counted by leaving it out (`prices`), and each change by applying it to
//! base alone (`blame`). What counts is behind `Bench`; here it is only decided what is counted, and when to stop.

mod bench;
mod blame;
mod count;
mod prices;

pub use bench::{Bench, Event};
pub use blame::{Known, blame};
pub use count::count_of;
pub use prices::{Subject, prices};
