//! Overlay layers above the mounts' sources and below what a guest writes. They come from the
//! snapshot from which the guest started, or from the earlier bundle on which a follow-up run
//! builds.

use super::base::Base;
use crate::prepared::context::RunContext;
use crate::prepared::earlier_layers::EarlierLayers;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use wp_codebox_contracts::HostSource;

/// Origin of the overlay layers. Their directories stay open while a guest uses them.
#[derive(Debug, Clone)]
pub(crate) enum Below {
    /// A snapshot. If a follow-up run made it, its layers also contain the earlier bundle's change.
    Snapshot(Arc<Base>),
    /// The change of the earlier bundle on which a follow-up run builds.
    Earlier(Arc<EarlierLayers>),
}

impl Below {
    /// Returns the layers for a guest: the layers of the snapshot `base`; without a snapshot, the
    /// layers of the earlier bundle; `None` if the run is not a follow-up run either.
    pub(crate) fn of(context: &RunContext<'_>, base: Option<Arc<Base>>) -> Option<Self> {
        let earlier = context.earlier.as_ref();
        base.map(Self::Snapshot)
            .or_else(|| earlier.map(|earlier| Self::Earlier(Arc::clone(earlier))))
    }

    /// Returns the host directory of the layer with this index.
    pub(crate) fn place(&self, index: u32) -> Option<HostSource> {
        match self {
            Self::Snapshot(base) => base.place(index),
            Self::Earlier(earlier) => earlier.place(index),
        }
    }

    /// Returns the host directory of the layer that contains the changes of `wp-content`.
    pub(crate) fn content(&self) -> Vec<HostSource> {
        match self {
            Self::Snapshot(base) => base.content(),
            Self::Earlier(_) => Vec::new(),
        }
    }

    /// Returns an open descriptor of the layer with this index.
    pub(crate) fn layer(&self, index: u32) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Snapshot(base) => base.layer(index),
            Self::Earlier(earlier) => earlier.layer(index),
        }
    }
}
