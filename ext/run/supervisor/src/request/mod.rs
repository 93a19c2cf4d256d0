//! Checks the request, opens the files that it names, gives up root, and finds the earlier bundle of a
//! follow-up. Passes [`prepare::Prepared`] on.

pub(crate) mod components;
pub(crate) mod end_check;
pub(crate) mod follow_up;
pub(crate) mod generated;
pub(crate) mod git;
pub mod group;
pub(crate) mod http_requests;
pub mod identity;
pub(crate) mod mounts;
pub(crate) mod pinned;
pub mod placed;
pub(crate) mod prepare;
pub mod preset;
pub(crate) mod preview_request;
pub(crate) mod programs;
pub(crate) mod request_document;
pub(crate) mod scope;
pub(crate) mod scratch_space;
pub(crate) mod secrets;
pub(crate) mod service_plan;
pub(crate) mod sources;
pub(crate) mod subordinate_ids;
pub(crate) mod wasi_tools;
