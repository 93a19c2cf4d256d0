//! Chooses the host on which a sandbox runs.
//!
//! Extensions are kinds of sandbox, described by data ([`Capabilities`]); hosts are places where an
//! extension can start one ([`HostRecord`]). [`decide`] is a pure function of a request, hosts and
//! capabilities. It explains the choice and every refused host. [`HostIndex`] gives the same
//! choice for many hosts without reading all of them.
//!
//! Invariants: a chosen host meets every constraint, because constraints are checked before hosts
//! are compared; the order of the input has no effect, because ids break every tie; what is
//! unknown does not meet a constraint. Nothing here does I/O or reads the clock.
#![forbid(unsafe_code)]

mod candidate;
mod capabilities;
mod decision;
mod document;
mod host;
mod index;
mod record;
mod why;

pub use capabilities::{Capabilities, PriceModel};
pub use decision::{Choice, Decision, decide};
pub use document::ROUTE_DECISION;
pub use host::{HostLoad, HostRecord, HostState};
pub use index::{HostIndex, IndexError};
pub use record::{RecordError, RecordIssue};
pub use why::{Criterion, Reason, ReasonCode, Why};
pub use wp_codebox_contracts::{
    ArchitectureName, BundleTrust, ExtensionId, HostId, IsolationClass, NetworkControl,
    NetworkNeed, Persistence, Placement, RegionName, Route, RouteConstraints, RoutePolicy,
    RouteRequest, RouteStrategy, SandboxNeeds,
};
