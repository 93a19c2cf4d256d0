//! Documents about cores.

use super::cache::Core;
use serde_json::{Value, json};
use wp_codebox_contracts::schema_id;

/// Returns the document of one core, `wp-codebox/wordpress-core/v1`.
#[must_use]
pub fn core_document(core: &Core) -> Value {
    json!({"schema": schema_id::WORDPRESS_CORE, "success": true, "core": row(core)})
}

/// Returns the document of the installed cores, `wp-codebox/wordpress-core-list/v1`.
#[must_use]
pub fn list_document(cores: &[Core]) -> Value {
    json!({
        "schema": schema_id::WORDPRESS_CORE_LIST,
        "success": true,
        "total": cores.len(),
        "cores": cores.iter().map(row).collect::<Vec<Value>>(),
    })
}

fn row(core: &Core) -> Value {
    json!({
        "version": core.version,
        "path": core.path.display().to_string(),
        "source": core.source,
        "installedAt": core.installed_at,
        "current": core.current,
    })
}
