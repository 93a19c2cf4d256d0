//! Sandbox profiles `wp-codebox/sandbox-profile/v1`, in YAML or JSON.
//!
//! A profile defines the content, lifetime and permissions of a sandbox. The parser is strict: it
//! refuses unknown and duplicate keys, anchors, tags and multiple documents, limits size and depth,
//! and reports every problem with its path. It refuses unsupported features by name. A profile
//! contains only names of secrets. Its instructions are text and are never executed.

mod model;
mod read;
mod route;
mod setup;
mod text;
mod yaml;

pub use model::{
    Metadata, PROFILE_SCHEMA, Profile, ProfileIssue, Reachability, SecretRef, Setup, Ttl,
    Workspace, WorkspaceMode,
};

use read::Reader;
use serde_json::Value;
use sha2::{Digest, Sha256};
use wp_codebox_contracts::Sha256Hex;

/// Maximum size of a profile document, in bytes.
pub const MAX_PROFILE_BYTES: usize = 64 * 1024;
/// Maximum number of problems reported for one profile.
const MOST_ISSUES: usize = 100;

/// Parses a profile: as JSON when the text begins with `{`, otherwise as YAML.
pub fn parse_profile(bytes: &[u8]) -> Result<Profile, Vec<ProfileIssue>> {
    let whole = |message: String| {
        vec![ProfileIssue {
            path: "$".to_owned(),
            message,
        }]
    };
    if bytes.len() > MAX_PROFILE_BYTES {
        return Err(whole(format!(
            "the profile has {} bytes; at most {MAX_PROFILE_BYTES} are accepted: shorten it",
            bytes.len()
        )));
    }
    let value = if bytes.trim_ascii_start().starts_with(b"{") {
        crate::json::read(bytes).map_err(|issues| {
            let issue = |issue: crate::Issue| ProfileIssue {
                path: issue.path,
                message: issue.message.replace("the recipe", "the profile"),
            };
            issues.into_iter().map(issue).collect::<Vec<_>>()
        })?
    } else {
        let text = std::str::from_utf8(bytes)
            .map_err(|e| whole(format!("the profile is not UTF-8: {e}")))?;
        yaml::read(text)?
    };
    profile(&value, Sha256Hex::from_bytes(&Sha256::digest(bytes).into()))
}

fn profile(value: &Value, sha256: Sha256Hex) -> Result<Profile, Vec<ProfileIssue>> {
    let mut reader = Reader::default();
    let read = reader.profile(value, sha256);
    let mut issues = reader.issues;
    issues.truncate(MOST_ISSUES);
    match (read, issues.is_empty()) {
        (Some(profile), true) => Ok(profile),
        _ => Err(issues),
    }
}

#[cfg(test)]
mod tests;
