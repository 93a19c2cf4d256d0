//! What an install reports while it runs. The caller shows it.

/// A part of an install that takes time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Transfer of an archive over the network.
    Download,
    /// Writing of the files.
    Unpack,
}

/// Receiver of the progress of an install.
pub trait Progress {
    /// A step begins. `title` names what is installed; `total` is the number of bytes to process,
    /// if it is known.
    fn begin(&self, step: Step, title: &str, total: Option<u64>);
    /// The current step has processed this many bytes since it began.
    fn advance(&self, bytes: u64);
    /// The current step is complete.
    fn finish(&self);
    /// Shows a message to the user.
    fn note(&self, sentence: &str);
}

/// Shows nothing.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: Step, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
    fn finish(&self) {}
    fn note(&self, _: &str) {}
}
