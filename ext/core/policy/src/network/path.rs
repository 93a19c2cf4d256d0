//! Request paths in the form that rules are compared with.
//!
//! Only percent-encoded unreserved characters are decoded, which never changes the meaning of a
//! path (RFC 3986). Paths that servers and proxies are known to interpret differently (dot
//! segments, encoded slashes, empty segments, `;`, backslashes, double encoding) have no such
//! form: rules with paths never match them.

/// Why a request target is refused before it is compared with any rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The target does not begin with `/`.
    #[error("the path must begin with /")]
    NotAbsolute,
    /// The target contains a space, control character, non-ASCII byte, `#` or backslash.
    #[error("the path has a #, or a byte that must be percent-encoded, such as a space; encode it")]
    Character,
}

/// Why a path has no form that rules can be compared with: servers and proxies interpret it
/// differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ambiguity {
    /// The path has a segment `.` or `..`, encoded or not.
    #[error("the path has a segment `.` or `..`")]
    DotSegment,
    /// The path contains `//`.
    #[error("the path has an empty segment (`//`)")]
    EmptySegment,
    /// The path contains `%2f` or `%5c`.
    #[error("the path has an encoded slash or backslash (%2f, %5c)")]
    EncodedSlash,
    /// The path contains `;` or `%3b`.
    #[error("the path has a `;`, which begins a parameter")]
    Parameter,
    /// The path contains `%25`: a server may decode the following characters a second time.
    #[error("the path has an encoded percent sign (%25)")]
    DoubleEncoding,
    /// The path contains `%` without two hexadecimal digits, or an encoded control character.
    #[error("the path has a `%` sequence that is malformed or encodes a control character")]
    BadEncoding,
}

/// Path and query of a request, and the form of the path that rules are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath {
    path: String,
    query: Option<String>,
    form: Result<String, Ambiguity>,
}

impl RequestPath {
    /// Parses the request target of an HTTP request, `/path?query`.
    pub fn parse(target: &str) -> Result<Self, PathError> {
        if !target.starts_with('/') {
            return Err(PathError::NotAbsolute);
        }
        if !target
            .bytes()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b'#' | b'\\'))
        {
            return Err(PathError::Character);
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        Ok(Self {
            path: path.to_owned(),
            query,
            form: comparable(path),
        })
    }

    /// Returns the path as the client sent it, without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the query as the client sent it, without the `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// Returns the path in the form that rules are compared with, or why it has none.
    pub fn comparable(&self) -> Result<&str, Ambiguity> {
        self.form.as_deref().map_err(|why| *why)
    }
}

fn comparable(path: &str) -> Result<String, Ambiguity> {
    let mut out = String::with_capacity(path.len());
    let bytes = path.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits = bytes.get(at + 1..at + 3).ok_or(Ambiguity::BadEncoding)?;
                let code = std::str::from_utf8(digits)
                    .ok()
                    .filter(|_| digits.iter().all(u8::is_ascii_hexdigit))
                    .and_then(|text| u8::from_str_radix(text, 16).ok())
                    .ok_or(Ambiguity::BadEncoding)?;
                match code {
                    b'/' | b'\\' => return Err(Ambiguity::EncodedSlash),
                    b';' => return Err(Ambiguity::Parameter),
                    b'%' => return Err(Ambiguity::DoubleEncoding),
                    0..=0x1f | 0x7f => return Err(Ambiguity::BadEncoding),
                    b'-' | b'.' | b'_' | b'~' => out.push(char::from(code)),
                    _ if code.is_ascii_alphanumeric() => out.push(char::from(code)),
                    _ => out.push_str(&format!("%{code:02X}")),
                }
                at += 3;
            }
            b';' => return Err(Ambiguity::Parameter),
            _ => {
                out.push(char::from(byte));
                at += 1;
            }
        }
    }
    let segments: Vec<&str> = out.split('/').skip(1).collect();
    if segments.iter().any(|s| matches!(*s, "." | "..")) {
        return Err(Ambiguity::DotSegment);
    }
    let inner = segments.len().saturating_sub(1);
    if segments.iter().take(inner).any(|s| s.is_empty()) {
        return Err(Ambiguity::EmptySegment);
    }
    Ok(out)
}

/// Returns whether a rule with the path `prefix` covers `path`; both are in comparable form. `/a/`
/// covers every path below it; `/a` covers itself and every path below it, never `/ab`.
pub(super) fn covers(prefix: &str, path: &str) -> bool {
    match path.strip_prefix(prefix) {
        Some(rest) => prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(target: &str) -> Result<String, Ambiguity> {
        RequestPath::parse(target)
            .unwrap()
            .comparable()
            .map(str::to_owned)
    }

    #[test]
    fn only_percent_encoded_unreserved_characters_are_decoded() {
        assert_eq!(form("/%61%2D%7e/b%20c?x=/../").unwrap(), "/a-~/b%20c");
        assert_eq!(form("/caf%c3%a9").unwrap(), "/caf%C3%A9");
        assert_eq!(form("/").unwrap(), "/");
        assert_eq!(form("/a/").unwrap(), "/a/");
        assert_eq!(form("/.well-known/...").unwrap(), "/.well-known/...");
    }

    #[test]
    fn ambiguous_request_path_is_reported_instead_of_normalised() {
        for (target, why) in [
            ("/a/../b", Ambiguity::DotSegment),
            ("/a/%2e%2E/b", Ambiguity::DotSegment),
            ("/a/.%2e", Ambiguity::DotSegment),
            ("/./a", Ambiguity::DotSegment),
            ("//a", Ambiguity::EmptySegment),
            ("/a//b", Ambiguity::EmptySegment),
            ("/a%2fb", Ambiguity::EncodedSlash),
            ("/a%5C..%5Cb", Ambiguity::EncodedSlash),
            ("/a;x/b", Ambiguity::Parameter),
            ("/a%3b/b", Ambiguity::Parameter),
            ("/a%252e%252e/b", Ambiguity::DoubleEncoding),
            ("/a%", Ambiguity::BadEncoding),
            ("/a%4", Ambiguity::BadEncoding),
            ("/a%+1", Ambiguity::BadEncoding),
            ("/a%00", Ambiguity::BadEncoding),
            ("/a%0d%0a", Ambiguity::BadEncoding),
        ] {
            assert_eq!(form(target), Err(why), "{target}");
        }
    }

    #[test]
    fn malformed_request_targets_are_refused() {
        for target in ["", "a", "*", "?x", "http://a.b/"] {
            assert_eq!(RequestPath::parse(target), Err(PathError::NotAbsolute));
        }
        for target in ["/a b", "/a#b", "/a\\b", "/é", "/a\r\nb", "/\0"] {
            assert_eq!(RequestPath::parse(target), Err(PathError::Character));
        }
    }

    #[test]
    fn path_prefixes_match_whole_segments_only() {
        for (prefix, path, covered) in [
            ("/", "/", true),
            ("/", "/a/b", true),
            ("/a/", "/a/b", true),
            ("/a/", "/a/", true),
            ("/a/", "/a", false),
            ("/a", "/a", true),
            ("/a", "/a/b", true),
            ("/a", "/ab", false),
            ("/a", "/A", false),
        ] {
            assert_eq!(covers(prefix, path), covered, "{prefix} {path}");
        }
    }
}
