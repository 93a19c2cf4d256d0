//! Where requests wait between the thread that hears them and the one that owns the guest.

/// Requests, in order of arrival. Of a run that is not held it is closed from the beginning.
#[derive(Debug, Default)]
pub(crate) struct Desk;
