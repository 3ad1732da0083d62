//! A program that ends with the value that holds it.

use std::process::Child;

/// The program. It is killed when this is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}
