//! Query parameters: checked against the table of operations before the handler runs.

use crate::problem::{ApiResult, Problem};
use axum::extract::Query;
use axum::http::Uri;

/// Maximum length of the value of a parameter in bytes.
const LONGEST: usize = 256;
/// Rows of a page if the client names no limit.
const PAGE: usize = 50;

/// Accepted values of a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// Text that matches a regular expression; the handler checks it.
    Pattern(&'static str),
    Number {
        least: u64,
        most: u64,
    },
    Word(&'static [&'static str]),
}

/// A query parameter or header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    pub description: &'static str,
}

impl Parameter {
    pub(crate) const fn new(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self {
            name,
            kind,
            description,
        }
    }
}

/// Valid query parameters of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args(Vec<(String, String)>);

impl Args {
    /// Reads and checks the parameters of an address. Unknown and repeated ones are errors.
    pub(crate) fn parse(uri: &Uri, known: &[Parameter]) -> ApiResult<Self> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(|_| {
            Problem::invalid("the query of the address is not valid percent-encoded text")
        })?;
        for (index, (name, value)) in pairs.iter().enumerate() {
            let shown: String = name.chars().take(64).collect();
            let Some(parameter) = known.iter().find(|known| known.name == name) else {
                let names: Vec<&str> = known.iter().map(|known| known.name).collect();
                let accepted = match names.is_empty() {
                    true => "this path takes none".to_owned(),
                    false => format!("accepted are: {}", names.join(", ")),
                };
                let message = format!("unknown query parameter {shown:?}; {accepted}");
                return Err(Problem::invalid(message));
            };
            if pairs.iter().take(index).any(|(earlier, _)| earlier == name) {
                let message =
                    format!("the query parameter {shown:?} is there twice; write it once");
                return Err(Problem::invalid(message));
            }
            if !parameter.kind.accepts(value) || value.len() > LONGEST {
                let message = format!(
                    "the query parameter {shown:?} must be {}",
                    parameter.kind.rule()
                );
                return Err(Problem::invalid(message));
            }
        }
        Ok(Self(pairs))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Returns the number of rows of a page.
    pub(crate) fn limit(&self) -> usize {
        self.number("limit")
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(PAGE)
    }
}

impl Kind {
    fn accepts(self, value: &str) -> bool {
        match self {
            Self::Text | Self::Pattern(_) => !value.is_empty(),
            Self::Number { least, most } => value
                .parse::<u64>()
                .is_ok_and(|number| (least..=most).contains(&number)),
            Self::Word(words) => words.contains(&value),
        }
    }

    fn rule(self) -> String {
        match self {
            Self::Text => "a text of 1 to 256 bytes".to_owned(),
            Self::Pattern(pattern) => format!("a text of the form {pattern}"),
            Self::Number { least, most } => format!("a number from {least} to {most}"),
            Self::Word(words) => format!("one of: {}", words.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_repeated_and_malformed_query_parameters_are_refused() {
        let limits = Kind::Number {
            least: 1,
            most: 200,
        };
        let known = [
            Parameter::new("limit", limits, ""),
            Parameter::new("state", Kind::Word(&["ready"]), ""),
            Parameter::new("profile", Kind::Text, ""),
        ];
        let read = |query: &str| Args::parse(&format!("/x?{query}").parse().unwrap(), &known);
        let args = read("limit=7&profile=a%20b").unwrap();
        assert_eq!((args.limit(), args.text("profile")), (7, Some("a b")));
        let none = Args::parse(&"/x".parse().unwrap(), &known).unwrap();
        assert_eq!(none.limit(), PAGE);
        let long = format!("profile={}", "x".repeat(257));
        for query in [
            "limit=0",
            "limit=201",
            "limit=x",
            "limit=1&limit=1",
            "state=on",
            "other=1",
            "profile=",
            &long,
        ] {
            assert!(read(query).is_err(), "{query}");
        }
    }
}
