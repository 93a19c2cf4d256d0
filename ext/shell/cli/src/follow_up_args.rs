//! Flags of `run` that name an earlier bundle, whose change the run continues, and comments on it.

use super::request::input;
use clap::Args;
use wp_codebox_contracts::{ErrorBody, FollowUpOf, ReviewComment};

/// Heading of these options in the help.
const HEADING: &str = "Follow-up of an earlier run";

/// Arguments about the earlier bundle.
#[derive(Debug, Default, Args)]
pub(crate) struct FollowUpArgs {
    /// Continue the change of an earlier run of the same --site: id of the run or of its bundle, or
    /// a unique beginning of either. The guest starts from the mounts with that change, and the new
    /// bundle contains both changes.
    #[arg(long, value_name = "RUN|BUNDLE", help_heading = HEADING)]
    pub follow_up: Option<String>,
    /// Comment on a file of the earlier change, or on another path in a mount; may be repeated.
    #[arg(
        long = "comment",
        value_name = "PATH[:LINE]=TEXT",
        help_heading = HEADING
    )]
    pub comments: Vec<String>,
    /// Comment on the earlier change as a whole; may be repeated.
    #[arg(long = "with", value_name = "TEXT", help_heading = HEADING)]
    pub remarks: Vec<String>,
}

impl FollowUpArgs {
    /// Returns the field `follow_up_of` of the task.
    pub(super) fn field(&self) -> Result<Option<FollowUpOf>, ErrorBody> {
        let Some(reference) = &self.follow_up else {
            return match self.comments.is_empty() && self.remarks.is_empty() {
                true => Ok(None),
                false => Err(input(
                    "--comment and --with belong to --follow-up RUN: name the earlier run",
                )),
            };
        };
        let on_paths = self.comments.iter().map(|text| comment(text));
        let remarks = self.remarks.iter().map(|body| {
            Ok(ReviewComment {
                body: body.clone(),
                ..ReviewComment::default()
            })
        });
        Ok(Some(FollowUpOf {
            artifact_id: Some(reference.clone()),
            run_id: None,
            comments: on_paths.chain(remarks).collect::<Result<_, _>>()?,
        }))
    }
}

/// Parses `PATH[:LINE]=TEXT`. The text begins after the first `=`.
fn comment(given: &str) -> Result<ReviewComment, ErrorBody> {
    let invalid = || {
        input(format!(
            "--comment {given:?} must be PATH[:LINE]=TEXT; use --with for a comment without a path"
        ))
    };
    let (place, body) = given.split_once('=').ok_or_else(invalid)?;
    let (path, line) = match place.rsplit_once(':') {
        Some((path, digits)) if is_number(digits) => {
            let line = digits.parse::<u64>().ok().filter(|line| *line > 0);
            (path, Some(line.ok_or_else(invalid)?))
        }
        Some(_) | None => (place, None),
    };
    if path.is_empty() || body.trim().is_empty() {
        return Err(invalid());
    }
    Ok(ReviewComment {
        path: Some(path.to_owned()),
        line,
        body: body.to_owned(),
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::ErrorCode;

    #[test]
    fn comment_argument_is_split_into_path_line_and_text() {
        for (given, path, line, body) in [
            ("a.php=rename it", "a.php", None, "rename it"),
            (
                "lib/a.php:12=use $x = 1",
                "lib/a.php",
                Some(12),
                "use $x = 1",
            ),
            ("a:b.php=t", "a:b.php", None, "t"),
            ("a:b.php:3= t", "a:b.php", Some(3), " t"),
            ("/workspace/p/a.php:=t", "/workspace/p/a.php:", None, "t"),
        ] {
            let found = comment(given).unwrap();
            let expected = (Some(path), line, body);
            let read = (found.path.as_deref(), found.line, found.body.as_str());
            assert_eq!(read, expected, "{given}");
        }
        for bad in [
            "",
            "a.php",
            "=text",
            ":3=text",
            "a.php=",
            "a.php= ",
            "a.php:0=t",
        ] {
            assert_eq!(
                comment(bad).unwrap_err().code,
                ErrorCode::InputInvalid,
                "{bad}"
            );
        }
        assert!(comment("a.php:99999999999999999999=t").is_err());
    }

    #[test]
    fn comments_without_a_path_are_sent_after_those_with_a_path() {
        let args = FollowUpArgs {
            follow_up: Some("run_1".to_owned()),
            comments: vec!["a.php=one".to_owned()],
            remarks: vec!["two".to_owned()],
        };
        let of = args.field().unwrap().unwrap();
        assert_eq!(of.artifact_id.as_deref(), Some("run_1"));
        let rows: Vec<_> = of
            .comments
            .iter()
            .map(|c| (c.path.as_deref(), &c.body[..]))
            .collect();
        assert_eq!(rows, [(Some("a.php"), "one"), (None, "two")]);
        assert_eq!(FollowUpArgs::default().field().unwrap(), None);
    }
}
