//! One turn of a chat: a pure machine that decides, a driver that performs, and what stands between the
//! chat's items and the words a model reads.

mod call;
pub(crate) mod driver;
mod history;
pub mod machine;
mod output;
mod prompt;
pub(crate) mod round;

pub(crate) use output::model_text;
