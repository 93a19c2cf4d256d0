//! A prepared run and the host that executes it.

use crate::request::placed::PlacedJob;
use crate::request::prepare::Prepared;
use wp_codebox_contracts::{Limits, RunRequest};
use wp_codebox_runtime::StateDir;

/// A run that may start, on this host or on another one.
#[derive(Debug)]
pub(crate) enum Job {
    Here(Box<Prepared>),
    Placed(Box<PlacedJob>),
}

impl Job {
    pub(crate) fn request(&self) -> &RunRequest {
        match self {
            Self::Here(prepared) => &prepared.request,
            Self::Placed(job) => &job.request,
        }
    }

    pub(crate) fn request_mut(&mut self) -> &mut RunRequest {
        match self {
            Self::Here(prepared) => &mut prepared.request,
            Self::Placed(job) => &mut job.request,
        }
    }

    /// Returns whether programs in the guest may call the model of the run; on another host they
    /// may if the built-in agent does not.
    pub(crate) fn guest_uses_model(&self) -> bool {
        match self {
            Self::Here(prepared) => prepared.guest_model.is_some(),
            Self::Placed(_) => true,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        match self {
            Self::Here(prepared) => &prepared.limits,
            Self::Placed(job) => &job.limits,
        }
    }

    pub(crate) fn state(&self) -> &StateDir {
        match self {
            Self::Here(prepared) => &prepared.state,
            Self::Placed(job) => &job.state,
        }
    }
}
