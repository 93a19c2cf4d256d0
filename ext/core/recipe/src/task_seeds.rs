//! Site seeds of a task. They have the form and the rules of a recipe's seeds of the parent site.

use crate::issue::{Issue, IssueCode};
use crate::model::SiteSeed;
use crate::parse::{RECIPE_SCHEMA, parse};
use crate::sources::{
    HostFacts, ParentSite, PathKind, SecretStatus, Sources, UNKNOWN_VERSION, WpFallback, ZipEntry,
    ZipUnreadable,
};
use crate::validate;
use serde_json::{Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Members of a seed of a task. A seed of a recipe has further members, which depend on other
/// fields of the recipe.
const MEMBERS: [&str; 3] = ["type", "name", "scopes"];
/// Place of the seeds in the recipe that is validated.
const PLACE: &str = "$.inputs.siteSeeds";

/// Reads the field `site_seeds` of a task, and validates the seeds as those of a recipe.
///
/// # Errors
/// Fails with the first issue; its `data.field` names the member, such as
/// `site_seeds[0].scopes.users`, and `data.reason` is the code of the rule for recipes.
pub fn task_seeds(rows: &[Value]) -> Result<Vec<SiteSeed>, ErrorBody> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    for (index, row) in rows.iter().enumerate() {
        check_members(&format!("site_seeds[{index}]"), row)?;
    }
    let recipe = json!({
        "schema": RECIPE_SCHEMA,
        "inputs": {"siteSeeds": rows},
        "workflow": {"steps": [{"command": "wordpress.run-php", "args": ["code=1;"]}]},
    });
    let recipe = parse(recipe.to_string().as_bytes()).map_err(|issues| first(&issues))?;
    let site = Site {
        facts: HostFacts {
            wordpress_version: UNKNOWN_VERSION.to_owned(),
            php_version: String::new(),
            php_extensions: Vec::new(),
            server_programs: Vec::new(),
            parent_site: ParentSite::Present,
            wp_fallback: WpFallback::Refuse,
            theme: None,
        },
    };
    let issues = validate::seed_issues(&recipe, &site);
    match issues.is_empty() {
        true => Ok(recipe.inputs.site_seeds),
        false => Err(first(&issues)),
    }
}

/// Checks the seed's type and the names of its members. The validation of recipes also finds these
/// faults, but its messages would not fit a task.
fn check_members(at: &str, row: &Value) -> Result<(), ErrorBody> {
    let refuse = |code, field: String, rule: &str| {
        let message = format!("{field} {rule}");
        Err(ErrorBody::new(code, message).with("field", field))
    };
    let Some(members) = row.as_object() else {
        let rule = "must be an object with type, name and scopes";
        return refuse(ErrorCode::SiteSeedInvalid, at.to_owned(), rule);
    };
    if members.get("type") != Some(&json!("parent_site")) {
        let rule = "must be \"parent_site\": a task can copy content only from the site that starts it; to use a fixture, write a recipe";
        return refuse(ErrorCode::SiteSeedTypeInvalid, format!("{at}.type"), rule);
    }
    match members
        .keys()
        .find(|name| !MEMBERS.contains(&name.as_str()))
    {
        None => Ok(()),
        Some(name) => {
            let rule = "is not accepted: give type, name and scopes, or use the seed in a recipe";
            refuse(ErrorCode::SiteSeedInvalid, format!("{at}.{name}"), rule)
        }
    }
}

/// Converts the first issue to the error of a task.
fn first(issues: &[Issue]) -> ErrorBody {
    let seed = |issue: &&Issue| issue.path.starts_with(PLACE);
    let Some(issue) = issues.iter().find(seed).or(issues.first()) else {
        return ErrorBody::new(ErrorCode::Internal, "a seed was refused without a reason");
    };
    let field = match issue.path.strip_prefix(PLACE) {
        Some(rest) => format!("site_seeds{rest}"),
        None => "site_seeds".to_owned(),
    };
    let code = match issue.code {
        IssueCode::MissingSiteSeedScopes => ErrorCode::SiteSeedScopesMissing,
        IssueCode::InvalidSiteSeedName => ErrorCode::SiteSeedNameInvalid,
        IssueCode::InvalidSiteSeedScope | IssueCode::InvalidSiteSeedBound => {
            ErrorCode::SiteSeedScopeInvalid
        }
        IssueCode::UnboundedSiteSeedScope => ErrorCode::SiteSeedScopeUnbounded,
        IssueCode::UnboundedSiteSeedOptions => ErrorCode::SiteSeedOptionsUnbounded,
        IssueCode::UnsafeSiteSeedUsers => ErrorCode::SiteSeedUsersUnsafe,
        IssueCode::UnsafeSiteSeedMediaFiles => ErrorCode::SiteSeedMediaFilesUnsupported,
        _ if field.ends_with("].name") => ErrorCode::SiteSeedNameInvalid,
        _ if field.contains(".scopes.") => ErrorCode::SiteSeedScopeInvalid,
        _ => ErrorCode::SiteSeedInvalid,
    };
    ErrorBody::new(code, format!("{field}: {}", issue.message))
        .with("field", field)
        .with("reason", issue.code.as_str())
}

/// A host without files and secrets, which has a parent site.
struct Site {
    facts: HostFacts,
}

impl Sources for Site {
    fn kind(&self, _: &str) -> PathKind {
        PathKind::Missing
    }
    fn zip(&self, _: &str) -> Result<Vec<ZipEntry>, ZipUnreadable> {
        Ok(Vec::new())
    }
    fn sha256(&self, _: &str) -> Option<String> {
        None
    }
    fn requires_sha256(&self) -> bool {
        false
    }
    fn plugin_file(&self, _: &str) -> Option<String> {
        None
    }
    fn secret(&self, _: &str) -> SecretStatus {
        SecretStatus::Missing
    }
    /// The host reads the content later, after every field of the task was checked.
    fn parent_content(&self, _: &SiteSeed) -> Result<String, String> {
        Ok(String::new())
    }
    fn facts(&self) -> &HostFacts {
        &self.facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(scopes: Value) -> Value {
        json!({"type": "parent_site", "name": "s", "scopes": scopes})
    }

    #[test]
    fn seeds_of_a_task_are_read_with_their_scopes() {
        let scopes = json!({"posts": {"slugs": ["a"], "postTypes": ["page"]}, "users": {"maxRecords": 2, "anonymize": true},
            "options": {"names": ["blogname"]}, "activePlugins": true});
        let seeds = task_seeds(&[seed(scopes.clone())]).unwrap();
        assert_eq!(seeds[0].name, "s");
        assert_eq!(json!(seeds[0].scopes)["posts"]["slugs"], json!(["a"]));
        assert_eq!(task_seeds(&[]).unwrap(), []);
    }

    #[test]
    fn invalid_seed_of_a_task_is_refused_with_its_code_and_field() {
        let posts = json!({"posts": {"maxRecords": 1}});
        assert!(task_seeds(&[seed(posts.clone())]).is_ok());
        let with = |name: &str, value: Value| {
            let mut row = seed(posts.clone());
            row[name] = value;
            row
        };
        use ErrorCode as E;
        for (row, code, field) in [
            (json!("s"), E::SiteSeedInvalid, "site_seeds[0]"),
            (
                with("type", json!("fixture")),
                E::SiteSeedTypeInvalid,
                "site_seeds[0].type",
            ),
            (
                with("source", json!("./x.json")),
                E::SiteSeedInvalid,
                "site_seeds[0].source",
            ),
            (
                with("name", json!("a b")),
                E::SiteSeedNameInvalid,
                "site_seeds[0].name",
            ),
            (
                seed(json!({})),
                E::SiteSeedScopesMissing,
                "site_seeds[0].scopes",
            ),
            (
                seed(json!({"posts": {"names": ["a"], "maxRecords": 1}})),
                E::SiteSeedScopeInvalid,
                "site_seeds[0].scopes.posts.names",
            ),
            (
                seed(json!({"posts": {"slugs": ["a*"]}})),
                E::SiteSeedScopeInvalid,
                "site_seeds[0].scopes.posts.slugs[0]",
            ),
            (
                seed(json!({"posts": {"maxRecords": 101}})),
                E::SiteSeedScopeInvalid,
                "site_seeds[0].scopes.posts.maxRecords",
            ),
            (
                seed(json!({"posts": {"postTypes": ["page"]}})),
                E::SiteSeedScopeUnbounded,
                "site_seeds[0].scopes.posts",
            ),
            (
                seed(json!({"options": {"maxRecords": 5}})),
                E::SiteSeedOptionsUnbounded,
                "site_seeds[0].scopes.options",
            ),
            (
                seed(json!({"users": {"maxRecords": 1}})),
                E::SiteSeedUsersUnsafe,
                "site_seeds[0].scopes.users",
            ),
            (
                seed(json!({"media": {"maxRecords": 1, "includeFiles": true}})),
                E::SiteSeedMediaFilesUnsupported,
                "site_seeds[0].scopes.media.includeFiles",
            ),
        ] {
            let error = task_seeds(std::slice::from_ref(&row)).unwrap_err();
            assert_eq!(error.code, code, "{row} {error}");
            assert_eq!(error.data.unwrap()["field"], field, "{row}");
        }
        let twice = [seed(posts.clone()), seed(posts)];
        assert_eq!(task_seeds(&twice).unwrap_err().code, E::SiteSeedNameInvalid);
    }
}
