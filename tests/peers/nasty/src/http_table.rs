//! The modes over HTTP.

use crate::Mode;

pub(crate) fn modes() -> Vec<Mode> {
    Vec::new()
}
