//! Checks whether a profile may be used on this host, where `wp-codebox sandbox create` always
//! starts its sandboxes.

use wp_codebox_contracts::{
    ArchitectureName, ErrorBody, ErrorCode, ExtensionId, HostId, InvalidId,
};
use wp_codebox_recipe::Profile;
use wp_codebox_routing::{Capabilities, HostRecord, decide};

/// Maximum number of reasons in the error.
const REASONS: usize = 20;

/// Refuses a profile that requires another extension (system that runs sandboxes) than `native`, or
/// whose placement and routing rules this host does not meet. The rules are those of a service
/// whose only host is this one.
pub fn check_route(profile: &Profile) -> Result<(), ErrorBody> {
    let internal = |error: InvalidId| ErrorBody::new(ErrorCode::Internal, error.to_string());
    let architecture = ArchitectureName::new(std::env::consts::ARCH).map_err(internal)?;
    let host = HostRecord::new(HostId::local(), ExtensionId::native(), 1);
    let capabilities = [Capabilities::native(architecture)];
    let decision = decide(&profile.route_request(), &[host], &capabilities);
    if decision.chosen.is_some() {
        return Ok(());
    }
    let against = decision
        .reasons
        .iter()
        .filter(|reason| reason.host.is_some());
    let sentences: Vec<String> = against.map(|reason| reason.why.to_string()).collect();
    let message = format!(
        "the profile {} cannot be used by this command, which starts native sandboxes on this host: {}; use another profile",
        profile.id,
        sentences.join("; ")
    );
    Err(ErrorBody::new(ErrorCode::RouteUnsatisfied, message)
        .hint("create the sandbox through a service that has a host for this profile, or change \"extension\", \"placement\" or \"route\" in the profile")
        .with("decision", decision.document(REASONS)))
}
