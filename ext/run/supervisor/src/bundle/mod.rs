//! Verdict, documents, recovery bundle and signed bundle. Passes [`finish::RunEnd`] on.

pub(crate) mod attest;
pub(crate) mod envelopes;
pub(crate) mod export;
pub(crate) mod finish;
pub(crate) mod inputs;
pub(crate) mod recovery_bundle;
pub(crate) mod test_files;
pub(crate) mod verdict;
