//! Bundles of agents, as a caller gives them.

use super::rows::{absolute_rule, bounded};
use crate::fields::Fields;
use crate::ini::is_absolute;
use wp_codebox_contracts::{AgentBundle, BundleConflict, ErrorBody, ErrorCode};

const KNOWN: &[&str] = &[
    "source",
    "bundle",
    "slug",
    "on_conflict",
    "owner_id",
    "token_env",
    "import_principal",
];

/// Reads `agent_bundles`; what they may name is judged by the policy crate.
pub(super) fn agent_bundles(fields: &mut Fields) -> Result<Vec<AgentBundle>, ErrorBody> {
    let rows = fields.rows("agent_bundles", KNOWN, ErrorCode::InputInvalid)?;
    bounded(fields, "agent_bundles", rows.len())?;
    rows.into_iter().map(agent_bundle).collect()
}

fn agent_bundle(mut row: Fields) -> Result<AgentBundle, ErrorBody> {
    let source = row.text("source")?;
    let bundle = row.object("bundle")?;
    if source.as_deref().is_some_and(|path| !is_absolute(path)) {
        return Err(row.refuse("source", absolute_rule()));
    }
    let on_conflict = match row.text("on_conflict")?.as_deref() {
        None | Some("upgrade") => BundleConflict::Upgrade,
        Some("skip") => BundleConflict::Skip,
        Some("error") => BundleConflict::Error,
        Some(_) => return Err(row.refuse("on_conflict", "error, skip or upgrade")),
    };
    Ok(AgentBundle {
        source,
        bundle,
        slug: row.text("slug")?,
        on_conflict,
        owner_id: row.count("owner_id")?,
        token_env: row.text("token_env")?,
        import_principal: row
            .object("import_principal")?
            .filter(|principal| !principal.is_empty()),
    })
}
