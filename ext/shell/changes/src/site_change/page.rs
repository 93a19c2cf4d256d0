//! Requests pages of a site and compares what they answered.

use reqwest::header::COOKIE;
use reqwest::{Client, redirect, retry};
use std::time::Duration;
use tokio::runtime::Runtime;
use wp_codebox_contracts::HealthPage;
use wp_codebox_proxy::egress::{Trust, client_tls, no_tls};

/// Time limit of one page.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of redirects.
const REDIRECTS: usize = 10;
/// Maximum number of bytes of a page that are searched.
const MOST: usize = 2 * 1024 * 1024;
/// Class of the message with which WordPress ends a page after a fatal error.
const ERROR_PAGE: &[u8] = b"wp-die-message";

/// What a page answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// The server sent a response.
    Answer {
        /// HTTP status of the response.
        status: u16,
        /// Kind of the body.
        body: Body,
    },
    /// The server sent no complete response, for this reason.
    NoAnswer(&'static str),
}

/// Kind of the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// The body has text.
    Text,
    /// The body has nothing but white space.
    Empty,
    /// The body has the message that WordPress prints after a fatal error.
    ErrorPage,
}

impl Seen {
    /// Returns a description of the answer for the report.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Answer { status, body } => match body {
                Body::Text => status.to_string(),
                Body::Empty => format!("{status}, empty page"),
                Body::ErrorPage => format!("{status}, error message of WordPress"),
            },
            Self::NoAnswer(why) => (*why).to_owned(),
        }
    }

    /// Returns whether a page worked with its answer `before` a change and fails with this answer
    /// after the change.
    pub(super) fn is_worse_than(&self, before: &Self) -> bool {
        let Self::Answer {
            status: old_status,
            body: old_body,
        } = before
        else {
            return false;
        };
        if *old_status >= 500 {
            return false;
        }
        match self {
            Self::NoAnswer(_) => true,
            Self::Answer { status, body } => {
                *status >= 500
                    || (*status == 404 && *old_status < 400)
                    || (*body != Body::Text && *old_body == Body::Text && *status < 300)
            }
        }
    }
}

/// HTTP client for the pages of one site.
pub(super) struct Browser {
    client: Client,
    runtime: Runtime,
}

impl Browser {
    /// Creates the client; returns `None` if that fails.
    pub(super) fn new() -> Option<Self> {
        let tls = client_tls(&Trust::System).or_else(|_| no_tls()).ok()?;
        let client = Client::builder()
            .user_agent(concat!("wp-codebox/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls)
            .redirect(redirect::Policy::custom(follow))
            .retry(retry::never())
            .no_proxy()
            .timeout(TIMEOUT)
            .build()
            .ok()?;
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().ok()?;
        Some(Self { client, runtime })
    }

    /// Requests a page.
    pub(super) fn see(&self, page: &HealthPage) -> Seen {
        self.runtime.block_on(async {
            let mut request = self.client.get(&page.url);
            if let Some(cookie) = &page.cookie {
                request = request.header(COOKIE, cookie);
            }
            match self.answer(request).await {
                Ok(seen) => seen,
                Err(error) if error.is_redirect() => Seen::NoAnswer("redirect loop"),
                Err(error) if error.is_timeout() => Seen::NoAnswer("no answer within 10 seconds"),
                Err(error) if error.is_connect() => Seen::NoAnswer("no connection"),
                Err(_) => Seen::NoAnswer("incomplete answer"),
            }
        })
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> reqwest::Result<Seen> {
        let mut response = request.send().await?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MOST {
                break;
            }
        }
        let body = if bytes.iter().all(u8::is_ascii_whitespace) {
            Body::Empty
        } else if bytes.windows(ERROR_PAGE.len()).any(|w| w == ERROR_PAGE) {
            Body::ErrorPage
        } else {
            Body::Text
        };
        Ok(Seen::Answer { status, body })
    }
}

/// Follows redirects within the site. A redirect to another host is the answer of the page.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let same = attempt.previous().first().is_some_and(|first| {
        let next = attempt.url();
        (first.host_str(), first.port_or_known_default())
            == (next.host_str(), next.port_or_known_default())
    });
    if !same {
        attempt.stop()
    } else if attempt.previous().len() > REDIRECTS {
        attempt.error("too many redirects")
    } else {
        attempt.follow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpListener;

    /// Starts a server that answers every request with a redirect. Returns the URL of the server.
    fn redirecting(target: impl Fn(&str) -> String + Send + 'static) -> String {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", server.local_addr().unwrap());
        let own = url.clone();
        std::thread::spawn(move || {
            while let Ok((mut client, _)) = server.accept() {
                let _ = client.read(&mut [0; 4096]);
                let _ = write!(
                    client,
                    "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                    target(&own)
                );
            }
        });
        url
    }

    fn page(url: String) -> HealthPage {
        HealthPage {
            name: "front page".to_owned(),
            url,
            cookie: Some("session=secret".to_owned()),
        }
    }

    #[test]
    fn redirect_is_followed_only_to_the_same_host_and_a_redirect_loop_is_no_answer() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        other.set_nonblocking(true).unwrap();
        let elsewhere = format!("http://{}/", other.local_addr().unwrap());
        let browser = Browser::new().unwrap();
        let found = Seen::Answer {
            status: 302,
            body: Body::Empty,
        };
        let url = redirecting(move |_| elsewhere.clone());
        assert_eq!(browser.see(&page(url)), found);
        assert_eq!(other.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        let url = redirecting(|own| format!("{own}again"));
        assert_eq!(browser.see(&page(url)), Seen::NoAnswer("redirect loop"));
    }

    #[test]
    fn page_is_worse_only_if_it_becomes_a_server_error_a_404_empty_an_error_page_or_unreachable() {
        let text = |status| Seen::Answer {
            status,
            body: Body::Text,
        };
        let of = |body| Seen::Answer { status: 200, body };
        let gone = Seen::NoAnswer("no connection");
        // A page with a client error other than 404, such as 401, counts as working.
        for (before, after, worse) in [
            (text(200), text(200), false),
            (text(200), text(500), true),
            (text(200), text(404), true),
            (text(200), text(401), false),
            (text(400), text(400), false),
            (text(400), text(500), true),
            (text(404), text(404), false),
            (text(200), of(Body::Empty), true),
            (text(200), of(Body::ErrorPage), true),
            (of(Body::Empty), of(Body::Empty), false),
            (of(Body::ErrorPage), of(Body::ErrorPage), false),
            (text(200), gone.clone(), true),
            (text(500), gone.clone(), false),
            (gone.clone(), text(500), false),
            (gone.clone(), gone, false),
        ] {
            assert_eq!(after.is_worse_than(&before), worse, "{before:?} {after:?}");
        }
    }
}
