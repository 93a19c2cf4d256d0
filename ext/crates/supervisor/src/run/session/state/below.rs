//! Layers between the sources of the mounts and what a guest writes: of a snapshot from which the
//! guest started, or of the earlier bundle that the run continues.

use super::base::Base;
use crate::run::context::RunContext;
use crate::run::earlier_layers::EarlierLayers;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use wp_codebox_contracts::HostSource;

/// Where the layers come from. It stays open while a guest uses the layers.
#[derive(Debug, Clone)]
pub(in crate::run) enum Below {
    /// A snapshot. One that was made in a follow-up run contains the earlier change.
    Snapshot(Arc<Base>),
    /// The change of the earlier bundle.
    Earlier(Arc<EarlierLayers>),
}

impl Below {
    /// Returns what lies below a guest that starts from this snapshot, or from none.
    pub(in crate::run) fn of(context: &RunContext<'_>, base: Option<Arc<Base>>) -> Option<Self> {
        let earlier = context.earlier.as_ref();
        base.map(Self::Snapshot)
            .or_else(|| earlier.map(|earlier| Self::Earlier(Arc::clone(earlier))))
    }

    /// Returns the host directory of the layer with this index.
    pub(in crate::run) fn place(&self, index: u32) -> Option<HostSource> {
        match self {
            Self::Snapshot(base) => base.place(index),
            Self::Earlier(earlier) => earlier.place(index),
        }
    }

    /// Returns the host directory of the layer that contains the changes of `wp-content`.
    pub(in crate::run) fn content(&self) -> Vec<HostSource> {
        match self {
            Self::Snapshot(base) => base.content(),
            Self::Earlier(_) => Vec::new(),
        }
    }

    /// Returns an open descriptor of the layer with this index.
    pub(in crate::run) fn layer(&self, index: u32) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Snapshot(base) => base.layer(index),
            Self::Earlier(earlier) => earlier.layer(index),
        }
    }
}
