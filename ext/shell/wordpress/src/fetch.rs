//! HTTP client for versions, checksums and archives.
//!
//! Connections are encrypted, also after a redirect; only an origin on this machine may be plain
//! HTTP. The proxy settings of the environment apply. The size of a response is checked while it
//! arrives.

use super::source::{Origins, Transport};
use reqwest::{Client, Response, StatusCode, redirect, retry};
use sha2::Digest;
use std::error::Error;
use std::fs::File;
use std::future::Future;
use std::io::{self, Write};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use wp_codebox_contracts::CodedError;
use wp_codebox_proxy::egress::{EgressError, Trust, client_tls, no_tls};

/// Maximum number of redirects.
const REDIRECTS: usize = 5;

/// Time limits of the client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Maximum time to open a connection, including the TLS handshake.
    pub(super) connect: Duration,
    /// Maximum time without any data.
    pub(super) stall: Duration,
    /// Maximum time of one request with its whole response.
    pub(super) request: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            // `stall` alone is not enough: a server could send one byte now and then.
            request: Duration::from_secs(3600),
        }
    }
}

/// Reason why something could not be fetched.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(WordpressUnavailable)]
pub(super) enum FetchError {
    /// The client cannot be created.
    #[error("the HTTP client cannot be created: {reason}")]
    #[code(
        hint = "check the network and the variables HTTPS_PROXY and NO_PROXY",
        hint = "or install from a file: `wp-codebox wordpress install FILE.zip`"
    )]
    Setup { reason: String },
    /// The host's certificate authorities cannot be used.
    #[error("{0}")]
    #[code(transparent)]
    Tls(#[from] EgressError),
    /// There is no connection to the server, directly or through the proxy.
    #[error("{url} cannot be reached: {reason}")]
    #[code(
        hint = "check the network and the variables HTTPS_PROXY and NO_PROXY",
        hint = "or install from a file: `wp-codebox wordpress install FILE.zip`"
    )]
    Unreachable { url: String, reason: String },
    /// The connection broke or stalled.
    #[error("the transfer of {url} did not complete: {reason}")]
    #[code(hint = "try again later; nothing was installed")]
    Interrupted { url: String, reason: String },
    /// The server has no release of this version.
    #[error("there is no release of WordPress {version}: {url} does not exist")]
    #[code(
        InputInvalid,
        hint = "https://wordpress.org/download/releases/ lists the versions"
    )]
    NoRelease { version: String, url: String },
    /// The server answers with a status other than 200.
    #[error("{url} answered with status {status}")]
    #[code(hint = "try again later; nothing was installed")]
    Status { url: String, status: u16 },
    /// The response is larger than allowed.
    #[error("the download of {url} was stopped after {most} bytes, the maximum")]
    #[code(
        WordpressInvalid,
        hint = "a proxy or a network login page may have answered instead; nothing was installed"
    )]
    TooLarge { url: String, most: u64 },
    /// The response does not have the format that is expected at this URL.
    #[error("the response of {url} cannot be used: {reason}")]
    #[code(
        hint = "a proxy or a network login page may have answered instead; nothing was installed"
    )]
    Malformed { url: String, reason: String },
    /// The digest of the archive is not the published or pinned one.
    #[error("{url} does not match its {kind} {expected}; the download is damaged or was changed")]
    #[code(WordpressInvalid, hint = "try again later; nothing was installed")]
    Digest {
        url: String,
        kind: &'static str,
        expected: String,
    },
    // No hint here: for `Write` the caller adds one that names the directory.
    /// The archive cannot be stored.
    #[error("the download cannot be stored in the cache: {source}")]
    Write {
        #[source]
        source: io::Error,
    },
}

/// HTTP client with its async runtime.
pub(super) struct Fetcher {
    client: Client,
    runtime: Runtime,
    pace: Pace,
}

impl Fetcher {
    pub(super) fn new(origins: &Origins, pace: Pace) -> Result<Self, FetchError> {
        let setup = |reason: &dyn Error| FetchError::Setup {
            reason: innermost(reason),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| setup(&error))?;
        let builder = Client::builder()
            .user_agent(concat!("wp-codebox/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::custom(follow))
            .referer(false)
            .retry(retry::never())
            .http1_only()
            .connect_timeout(pace.connect)
            .read_timeout(pace.stall);
        let builder = match origins.transport {
            Transport::Tls => builder
                .tls_backend_preconfigured(client_tls(&Trust::System)?)
                .https_only(true),
            // No proxy: a proxy would take a loopback address for its own machine.
            Transport::Loopback => builder.tls_backend_preconfigured(no_tls()?).no_proxy(),
        };
        Ok(Self {
            client: builder.build().map_err(|error| setup(&error))?,
            runtime,
            pace,
        })
    }

    /// Returns the body of the response; an error if it is longer than `most` bytes.
    pub(super) fn bytes(&self, url: &str, most: u64) -> Result<Vec<u8>, FetchError> {
        let mut bytes = Vec::new();
        self.read(
            url,
            most,
            |_| {},
            |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            },
        )?;
        Ok(bytes)
    }

    /// Stores a response of at most `most` bytes in a file and returns its digest. Calls `begin`
    /// with the size that the server states, and `advance` with the number of bytes so far.
    pub(super) fn download<D: Digest>(
        &self,
        url: &str,
        most: u64,
        into: &mut File,
        begin: impl FnOnce(Option<u64>),
        mut advance: impl FnMut(u64),
    ) -> Result<Vec<u8>, FetchError> {
        let mut digest = D::new();
        let mut count = 0;
        self.read(url, most, begin, |piece| {
            digest.update(piece);
            count += piece.len() as u64;
            into.write_all(piece)?;
            advance(count);
            Ok(())
        })?;
        Ok(digest.finalize().to_vec())
    }

    /// Sends a request and passes each piece of the response to `write`.
    fn read(
        &self,
        url: &str,
        most: u64,
        begin: impl FnOnce(Option<u64>),
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), FetchError> {
        let too_large = || FetchError::TooLarge {
            url: url.to_owned(),
            most,
        };
        self.bounded(url, async {
            let mut response = self.response(url).await?;
            let stated = response.content_length();
            if stated.is_some_and(|stated| stated > most) {
                return Err(too_large());
            }
            begin(stated);
            let mut left = most;
            while let Some(piece) = response.chunk().await.map_err(|e| failure(url, e))? {
                left = left.checked_sub(piece.len() as u64).ok_or_else(too_large)?;
                write(&piece).map_err(|source| FetchError::Write { source })?;
            }
            Ok(())
        })
    }

    async fn response(&self, url: &str) -> Result<Response, FetchError> {
        let sent = self.client.get(url).send().await;
        let response = sent.map_err(|error| failure(url, error))?;
        match response.status() {
            StatusCode::OK => Ok(response),
            status => Err(FetchError::Status {
                url: url.to_owned(),
                status: status.as_u16(),
            }),
        }
    }

    /// Runs a request with the time limit [`Pace::request`].
    fn bounded<T>(
        &self,
        url: &str,
        request: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        let bounded = async { timeout(self.pace.request, request).await };
        self.runtime.block_on(bounded).unwrap_or_else(|_| {
            Err(FetchError::Interrupted {
                url: url.to_owned(),
                reason: format!("it took longer than {:?}", self.pace.request),
            })
        })
    }
}

/// Permits a redirect only to an encrypted address or to the origin of the request itself.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let is_same_origin = attempt
        .previous()
        .first()
        .is_some_and(|first| first.origin() == attempt.url().origin());
    if attempt.previous().len() > REDIRECTS {
        attempt.error("too many redirects")
    } else if attempt.url().scheme() == "https" || is_same_origin {
        attempt.follow()
    } else {
        attempt.error("a redirect leads to an address without encryption")
    }
}

/// Returns the error for a request whose response did not arrive or broke off.
fn failure(url: &str, error: reqwest::Error) -> FetchError {
    let (url, reason) = (url.to_owned(), innermost(&error));
    match error.is_connect() {
        true => FetchError::Unreachable { url, reason },
        false => FetchError::Interrupted { url, reason },
    }
}

/// Returns the text of the innermost cause, which is the most specific one.
fn innermost(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
