//! Rules of `follow_up_of`: which earlier bundle a task continues, and the comments on it.
//!
//! The supervisor makes the other checks, because only it can read the bundle: that the bundle
//! exists and may be continued, and that the path of each comment belongs to the change or to a
//! mount.

use super::issues::Issues;
use wp_codebox_contracts::{ErrorBody, ErrorCode, ReviewComment, RunId, RunRequest};

/// Maximum number of comments.
const MAX_COMMENTS: usize = 100;
/// Maximum length of a comment's text in bytes.
const MAX_BODY: usize = 8 * 1024;
/// Maximum length of a comment's path in bytes.
const MAX_PATH: usize = 4096;
/// Maximum length of the texts and paths of all comments together in bytes.
const MAX_TOTAL: usize = 256 * 1024;
/// Maximum length of a reference to a bundle in bytes.
const MAX_REFERENCE: usize = 256;
/// Name of the member of the task's context that tells the agent about the earlier run.
pub const FOLLOW_UP_CONTEXT: &str = "follow_up";

pub(super) fn check(request: &RunRequest, issues: &mut Issues) {
    let Some(follow_up) = &request.follow_up else {
        return;
    };
    let of = &follow_up.of;
    let mut refuse = |field: &str, rule: &str| {
        issues.refuse(ErrorCode::InputInvalid, field, rule);
    };
    match (&of.artifact_id, &of.run_id) {
        (Some(reference), None) if reference.len() <= MAX_REFERENCE => {}
        (Some(_), None) => refuse(
            "follow_up_of.artifact_id",
            &format!("at most {MAX_REFERENCE} bytes long"),
        ),
        (None, Some(id)) if RunId::new(id.as_str()).is_ok() => {}
        (None, Some(_)) => refuse("follow_up_of.run_id", "the complete id of a run"),
        (Some(_), Some(_)) => refuse(
            "follow_up_of",
            "an object with artifact_id or run_id, not with both",
        ),
        (None, None) => {
            let message = "\"follow_up_of\" names no earlier bundle; give the bundle's \"artifact_id\", or the \"run_id\" of the run that made it";
            let issue = ErrorBody::new(ErrorCode::ArtifactIdMissing, message);
            issues.push(issue.with("field", "follow_up_of.artifact_id"));
        }
    }
    comments(&of.comments, issues);
    combinations(request, issues);
}

fn comments(comments: &[ReviewComment], issues: &mut Issues) {
    let mut refuse = |field: &str, rule: &str| {
        issues.refuse(ErrorCode::InputInvalid, field, rule);
    };
    if comments.len() > MAX_COMMENTS {
        let rule = format!("a list of at most {MAX_COMMENTS} comments");
        return refuse("follow_up_of.comments", &rule);
    }
    let mut total = 0;
    for (index, comment) in comments.iter().enumerate() {
        let field = |member: &str| format!("follow_up_of.comments[{index}].{member}");
        let path = comment.path.as_deref();
        if path.is_some_and(|path| path.trim().is_empty() || path.contains('\0')) {
            refuse(&field("path"), "not blank and free of NUL bytes");
        }
        if path.is_some_and(|path| path.len() > MAX_PATH) {
            refuse(&field("path"), &format!("at most {MAX_PATH} bytes long"));
        }
        match (comment.line, path) {
            (Some(0), _) => refuse(&field("line"), "a whole number from 1"),
            (Some(_), None) => refuse(&field("line"), "left out in a comment without a path"),
            (Some(_), Some(_)) | (None, _) => {}
        }
        if comment.body.trim().is_empty() || comment.body.contains('\0') {
            refuse(&field("body"), "not blank and free of NUL bytes");
        }
        if comment.body.len() > MAX_BODY {
            refuse(&field("body"), &format!("at most {MAX_BODY} bytes long"));
        }
        total += comment.body.len() + path.map_or(0, str::len);
    }
    if total > MAX_TOTAL {
        let rule = format!("at most {MAX_TOTAL} bytes long, all texts and paths together");
        refuse("follow_up_of.comments", &rule);
    }
}

/// Checks that a follow-up run has a goal and starts from no snapshot, and that the task's context
/// does not already contain the member [`FOLLOW_UP_CONTEXT`], which the supervisor adds.
fn combinations(request: &RunRequest, issues: &mut Issues) {
    let mut refuse = |field: &str, rule: &str| {
        issues.refuse(ErrorCode::InputInvalid, field, rule);
    };
    match &request.task {
        // Without a goal there is no task document, through which the comments reach the agent.
        None => refuse("follow_up_of", "left out in a run without a goal"),
        Some(task) if task.context.contains_key(FOLLOW_UP_CONTEXT) => refuse(
            &format!("context.{FOLLOW_UP_CONTEXT}"),
            "left out beside follow_up_of, which fills it",
        ),
        Some(_) => {}
    }
    // A snapshot and the earlier bundle both contain changes to the mounts' sources, and these
    // changes could contradict each other.
    let hold = request.hold.as_ref();
    if hold.is_some_and(|hold| hold.snapshot.is_some()) {
        refuse(
            "follow_up_of",
            "left out in a sandbox that starts from a snapshot",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_task;
    use serde_json::{Map, Value, json};
    use wp_codebox_contracts::SiteId;

    fn request(task: Value, host: Value) -> RunRequest {
        let map = |value: Value| value.as_object().cloned().unwrap_or_else(Map::new);
        let paths = json!({"state_dir": "/s", "share_dir": "/h", "launcher": "/l",
            "php_binary": "/p", "wordpress": "/w"});
        read_task(map(task), map(host)).unwrap().into_request(
            RunId::new(format!("run_{:032x}", 1)).unwrap(),
            SiteId::new("site-1").unwrap(),
            serde_json::from_value(paths).unwrap(),
        )
    }

    fn with(of: Value) -> RunRequest {
        request(json!({"goal": "g", "follow_up_of": of}), json!({}))
    }

    /// Returns code and field of the first issue.
    fn issue(request: &RunRequest) -> Option<(ErrorCode, String)> {
        let mut issues = Issues::default();
        check(request, &mut issues);
        let error = issues.into_result().err()?;
        let field = error.data.unwrap()["field"].as_str().unwrap().to_owned();
        Some((error.code, field))
    }

    #[test]
    fn follow_up_that_names_one_bundle_with_comments_within_the_limits_is_accepted() {
        let comments: Vec<Value> = (0..MAX_COMMENTS)
            .map(|_| json!({"path": "a.php", "line": 1, "body": "rename it"}))
            .collect();
        for of in [
            json!({"artifact_id": "1f3a"}),
            json!({"run_id": format!("run_{:032x}", 7)}),
            json!({"artifact_id": "1f3a", "comments": []}),
            json!({"artifact_id": "1f3a", "comments": comments}),
            json!({"artifact_id": "1f3a", "comments": [{"body": "x".repeat(MAX_BODY)}]}),
            json!({"artifact_id": "1f3a",
                "comments": [{"path": "p".repeat(MAX_PATH), "body": "b"}]}),
        ] {
            assert_eq!(issue(&with(of.clone())), None, "{of}");
        }
        assert_eq!(issue(&request(json!({"goal": "g"}), json!({}))), None);
    }

    #[test]
    fn invalid_follow_up_is_refused_with_the_name_of_the_invalid_field() {
        let comment = |comment: Value| json!({"artifact_id": "1f3a", "comments": [comment]});
        let many = vec![json!({"body": "b"}); MAX_COMMENTS + 1];
        let large = vec![json!({"body": "x".repeat(MAX_BODY)}); MAX_TOTAL / MAX_BODY + 1];
        for (of, field) in [
            (json!({}), "artifact_id"),
            (json!({"comments": []}), "artifact_id"),
            (
                json!({"artifact_id": "x".repeat(MAX_REFERENCE + 1)}),
                "artifact_id",
            ),
            (json!({"run_id": "run_1"}), "run_id"),
            (json!({"artifact_id": "1f3a", "comments": many}), "comments"),
            (
                json!({"artifact_id": "1f3a", "comments": large}),
                "comments",
            ),
            (
                comment(json!({"body": "x".repeat(MAX_BODY + 1)})),
                "comments[0].body",
            ),
            (comment(json!({"body": "a\0b"})), "comments[0].body"),
            (
                comment(json!({"path": "p".repeat(MAX_PATH + 1), "body": "b"})),
                "comments[0].path",
            ),
            (
                comment(json!({"path": "a\0", "body": "b"})),
                "comments[0].path",
            ),
            (
                comment(json!({"path": "a", "line": 0, "body": "b"})),
                "comments[0].line",
            ),
            (comment(json!({"line": 3, "body": "b"})), "comments[0].line"),
        ] {
            let (_, found) = issue(&with(of)).unwrap();
            assert_eq!(found, format!("follow_up_of.{field}"));
        }
        let both = json!({"artifact_id": "1f3a", "run_id": format!("run_{:032x}", 7)});
        assert_eq!(issue(&with(both)).unwrap().1, "follow_up_of");
        let none = issue(&with(json!({}))).unwrap();
        assert_eq!(none.0, ErrorCode::ArtifactIdMissing);
    }

    #[test]
    fn follow_up_with_unknown_members_or_wrong_types_is_refused() {
        for of in [
            json!("1f3a"),
            json!({"artifact_id": 1}),
            json!({"artifact_id": " "}),
            json!({"artifact_id": "1f3a", "site": "other"}),
            json!({"artifact_id": "1f3a", "comments": "b"}),
            json!({"artifact_id": "1f3a", "comments": ["b"]}),
            json!({"artifact_id": "1f3a", "comments": [{"path": "a"}]}),
            json!({"artifact_id": "1f3a", "comments": [{"body": ""}]}),
            json!({"artifact_id": "1f3a", "comments": [{"body": "b", "line": -1}]}),
            json!({"artifact_id": "1f3a", "comments": [{"body": "b", "author": "a"}]}),
        ] {
            let task = json!({"goal": "g", "follow_up_of": of});
            let error = read_task(task.as_object().unwrap().clone(), Map::new()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InputInvalid, "{of}");
            let field = error.data.unwrap()["field"].as_str().unwrap().to_owned();
            assert!(field.starts_with("follow_up_of"), "{of}: {field}");
        }
    }

    #[test]
    fn follow_up_of_is_refused_without_a_goal_with_a_snapshot_and_with_the_context_member_follow_up()
     {
        let of = json!({"artifact_id": "1f3a"});
        let hold = json!({"hold": {"ttl_ms": 1000}});
        let task = json!({"goal": "g", "follow_up_of": of});
        let mut held = request(task, hold);
        assert_eq!(issue(&held), None);
        if let Some(hold) = &mut held.hold {
            hold.snapshot = Some("snap_1".to_owned());
        }
        assert_eq!(issue(&held).unwrap().1, "follow_up_of");
        let goalless = request(json!({"follow_up_of": of}), json!({}));
        assert_eq!(issue(&goalless).unwrap().1, "follow_up_of");
        let context = |name: &str| {
            let task = json!({"goal": "g", "follow_up_of": of, "context": {name: "text"}});
            issue(&request(task, json!({})))
        };
        assert_eq!(context("ticket"), None);
        assert_eq!(context(FOLLOW_UP_CONTEXT).unwrap().1, "context.follow_up");
    }
}
