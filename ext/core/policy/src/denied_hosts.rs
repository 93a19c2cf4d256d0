//! Hint for a program that failed after its network requests were denied: which hosts it asked for
//! and which option allows them.
//!
//! The egress bridge knows the hosts of a guest that has one. A guest without a network has no bridge,
//! so there the hosts are read from the messages of the usual clients. A guest can print such a
//! message without a request: this is a hint, not evidence.

use std::collections::BTreeSet;

/// Maximum number of hosts that a hint names.
const NAMED: usize = 8;
/// Maximum length of a host with its port, in bytes.
const MAX_HOST: usize = 259;

/// Words before the host in the message of a client whose request was denied.
const BEFORE_HOST: &[&str] = &[
    // The egress bridge, and the guest's WordPress without one.
    "denied the request to ",
    // libcurl: curl, git, Composer, PHP, WordPress.
    "Could not resolve host: ",
    // Composer, which wraps its lines inside libcurl's words.
    "curl error 6 while downloading https://",
    // Node.js, npm.
    "getaddrinfo ENOTFOUND ",
    "getaddrinfo EAI_AGAIN ",
    // Streams of PHP.
    "getaddrinfo for ",
    // Python's urllib3, pip.
    "ConnectionPool(host='",
    "Failed to resolve '",
    // wget.
    "unable to resolve host address \u{2018}",
    "unable to resolve host address '",
];

/// Messages of clients that do not name the host.
const WITHOUT_HOST: &[&str] = &[
    "by the network policy of the sandbox",
    "CONNECT tunnel failed, response 403",
    "HTTP code 403 from proxy after CONNECT",
    "Cannot connect to HTTPS server through proxy",
    "Temporary failure in name resolution",
    "Name or service not known",
];

/// Hosts to which requests of a guest were denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeniedHosts {
    hosts: BTreeSet<String>,
    /// Output with denied requests that names no host, or a host too many to name.
    others: bool,
}

impl DeniedHosts {
    /// Adds a host. `port` is 0 if it is not known. Ignores text that is no host name: the guest chose
    /// it, and the hint is printed on a terminal.
    pub fn add(&mut self, host: &str, port: u16) {
        match port {
            0 | 80 | 443 => self.insert(host),
            port => self.insert(&format!("{host}:{port}")),
        }
    }

    /// Adds the hosts that messages of clients in the output of a program name.
    pub fn read(&mut self, output: &str) {
        for before in BEFORE_HOST {
            for (at, _) in output.match_indices(before) {
                let rest = &output[at + before.len()..];
                let end = rest.find(|c: char| !is_of_host(c)).unwrap_or(rest.len());
                let host = rest[..end].trim_end_matches(['.', ':', '-']);
                let port = host
                    .rsplit_once(':')
                    .and_then(|(_, port)| port.parse().ok());
                let name = host.split(':').next().unwrap_or_default();
                self.add(name, port.unwrap_or_default());
            }
        }
        let contains = |text: &&str| output.contains(*text);
        self.others |= !BEFORE_HOST.iter().any(contains) && WITHOUT_HOST.iter().any(contains);
    }

    fn insert(&mut self, host: &str) {
        let is_name = host.len() <= MAX_HOST
            && host.contains('.')
            && host.starts_with(|c: char| c.is_ascii_alphanumeric())
            && host.chars().all(is_of_host);
        if !is_name || self.hosts.contains(host) {
            return;
        }
        if self.hosts.len() < NAMED {
            self.hosts.insert(host.to_ascii_lowercase());
        } else {
            self.others = true;
        }
    }

    /// Returns the hint; `None` if no request was denied.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        if self.hosts.is_empty() {
            return self.others.then(|| {
                "the sandbox denied network requests: allow the hosts that the program needs with `wp-codebox run --allow-host HOST`".to_owned()
            });
        }
        let names: Vec<&str> = self.hosts.iter().map(String::as_str).collect();
        let options: Vec<String> = names.iter().map(|h| format!("--allow-host {h}")).collect();
        Some(format!(
            "the sandbox denied requests to {}{}: if the program needs them, allow them with `wp-codebox run {}`",
            names.join(", "),
            if self.others { " and others" } else { "" },
            options.join(" "),
        ))
    }
}

fn is_of_host(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | ':')
}

#[cfg(test)]
mod tests {
    use super::DeniedHosts;

    fn read(output: &str) -> Option<String> {
        let mut hosts = DeniedHosts::default();
        hosts.read(output);
        hosts.hint()
    }

    #[test]
    fn hosts_in_messages_of_the_usual_clients_are_named_with_their_option() {
        for (output, host) in [
            (
                "curl: (6) Could not resolve host: api.wordpress.org\n",
                "api.wordpress.org",
            ),
            (
                "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
                "github.com",
            ),
            (
                "cURL error 6: Could not resolve host: api.wordpress.org.",
                "api.wordpress.org",
            ),
            (
                "npm error request failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org",
                "registry.npmjs.org",
            ),
            (
                "PHP Warning: php_network_getaddresses: getaddrinfo for example.org failed: x",
                "example.org",
            ),
            (
                "HTTPSConnectionPool(host='pypi.org', port=443): Max retries",
                "pypi.org",
            ),
            (
                "wget: unable to resolve host address \u{2018}example.org\u{2019}",
                "example.org",
            ),
            (
                "the sandbox denied the request to example.org:443: the policy",
                "example.org",
            ),
            (
                "the sandbox denied the request to example.org:8443: the policy",
                "example.org:8443",
            ),
        ] {
            let hint = read(output).unwrap_or_else(|| panic!("{output}"));
            assert!(hint.ends_with(&format!("--allow-host {host}`")), "{hint}");
            assert!(!hint.contains("others"), "{hint}");
        }
        for output in [
            "pip: OSError('Tunnel connection failed: 403 Forbidden by the network policy of the sandbox (host-not-allowed)')",
            "Failed to establish a new connection: [Errno -2] Name or service not known",
        ] {
            assert!(
                read(output).unwrap().contains("--allow-host HOST"),
                "{output}"
            );
        }
    }

    #[test]
    fn output_without_a_denied_request_gets_no_hint() {
        for output in [
            "",
            "Error: 3 tests failed",
            "could not complete the request to example.org:443",
            "Could not resolve host: localhost",
        ] {
            assert_eq!(read(output), None, "{output}");
        }
    }

    #[test]
    fn text_that_is_no_host_name_is_left_out_and_the_number_of_names_is_bounded() {
        let mut hosts = DeniedHosts::default();
        for host in [
            "-x.example",
            "a\u{1b}[2J.example",
            "a b.example",
            "$(x).example",
            "",
        ] {
            hosts.add(host, 443);
        }
        hosts.add(&"a.".repeat(200), 443);
        assert_eq!(hosts.hint(), None);
        let many: String = (0..100)
            .map(|n| format!("Could not resolve host: h{n}.example\n"))
            .collect();
        hosts.read(&many);
        let hint = hosts.hint().unwrap();
        assert_eq!(hint.matches("--allow-host").count(), 8);
        assert!(hint.contains("h7.example and others:"), "{hint}");
    }
}
