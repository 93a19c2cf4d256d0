//! Handlers of a sandbox's files. Entity tags are the SHA-256 of a file's content, so a client can
//! write only over the content that it read.

use super::body;
use crate::access::Caller;
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use axum::Json;
use axum::extract::{Path, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};
use wp_codebox_contracts::hex;

/// Maximum length of a path in bytes.
const LONGEST: usize = 4096;

/// Returns the absolute guest path for the file path in a URL.
fn guest_path(path: &str) -> ApiResult<String> {
    let fits = !path.is_empty()
        && path.len() < LONGEST
        && !path.contains('\0')
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..");
    match fits {
        true => Ok(format!("/{path}")),
        false => Err(Problem::invalid(
            "the path of the file must be absolute in the guest, without empty parts, '.' and '..'",
        )),
    }
}

pub(super) async fn list(caller: Caller, Path(id): Path<String>) -> ApiResult<Json<Value>> {
    let sandbox = caller.usable_sandbox(&id).await?;
    let files = sandbox
        .call(Pool::Calls, |extension, id| extension.files(id))
        .await?;
    Ok(Json(files))
}

pub(super) async fn read(
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let sandbox = caller.usable_sandbox(&id).await?;
    let path = guest_path(&path)?;
    let content = sandbox
        .call(Pool::Calls, move |extension, id| {
            extension.read_file(id, &path)
        })
        .await?;
    let tag = format!("\"{}\"", hex(&Sha256::digest(&content)));
    let known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => content.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    // A browser that opens the address must not run what a guest wrote.
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment"),
    );
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

pub(super) async fn write(
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
    request: Request,
) -> ApiResult<Json<Value>> {
    let base = base(request.headers())?;
    // Checked before the body is read: a client without the right sends no 64 MiB.
    caller.usable_sandbox(&id).await?;
    let bounds = caller.bounds();
    let content = body::read(request, bounds.file, &bounds).await?;
    change(caller, &id, &path, Some(content), base).await
}

pub(super) async fn delete(
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> ApiResult<Json<Value>> {
    change(caller, &id, &path, None, base(&headers)?).await
}

async fn change(
    caller: Caller,
    id: &str,
    path: &str,
    content: Option<Bytes>,
    base: Option<String>,
) -> ApiResult<Json<Value>> {
    let sandbox = caller.usable_sandbox(id).await?;
    let (path, actor) = (guest_path(path)?, caller.principal.actor);
    let written = sandbox
        .call(Pool::Calls, move |extension, id| {
            extension.write_file(id, &path, content.as_deref(), base.as_deref(), &actor)
        })
        .await?;
    Ok(Json(written))
}

/// Returns the digest that the present content must have; empty if the file must not exist; `None`
/// if the request accepts any content.
fn base(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let refused = || {
        Problem::invalid(
            "If-Match must be the SHA-256 of the content in quotes, and If-None-Match must be *",
        )
    };
    match (
        headers.get(header::IF_MATCH),
        headers.get(header::IF_NONE_MATCH),
    ) {
        (None, None) => Ok(None),
        (None, Some(none)) if none == "*" => Ok(Some(String::new())),
        (Some(tag), None) => {
            let digest = tag
                .to_str()
                .ok()
                .and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"'))
                .filter(|tag| tag.len() == 64 && tag.bytes().all(|b| b.is_ascii_hexdigit()));
            Ok(Some(digest.ok_or_else(refused)?.to_owned()))
        }
        _ => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_malformed_and_overlong_file_paths_are_refused() {
        assert_eq!(
            guest_path("workspace/a b.txt").unwrap(),
            "/workspace/a b.txt"
        );
        let long = "x".repeat(LONGEST);
        for path in ["", "/etc", "a//b", "a/../b", "./a", "a/", "a\0b", &long] {
            assert!(guest_path(path).is_err(), "{path}");
        }
    }

    /// The file must have the expected digest before it is written; an empty digest means that the
    /// file must not exist.
    #[test]
    fn if_match_gives_the_expected_digest_and_if_none_match_star_an_empty_one() {
        let with = |name: header::HeaderName, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            base(&headers)
        };
        let digest = "0".repeat(64);
        let tag = format!("\"{digest}\"");
        assert_eq!(with(header::IF_MATCH, &tag).unwrap(), Some(digest.clone()));
        assert_eq!(
            with(header::IF_NONE_MATCH, "*").unwrap(),
            Some(String::new())
        );
        assert_eq!(base(&HeaderMap::new()).unwrap(), None);
        assert!(with(header::IF_MATCH, &digest).is_err());
        assert!(with(header::IF_MATCH, "*").is_err());
    }
}
