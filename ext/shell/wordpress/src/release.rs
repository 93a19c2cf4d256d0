//! Releases of wordpress.org and the npm package with a core: their URLs, the published checksums,
//! and the comparison of files with these.

use super::fetch::{FetchError, Fetcher};
use super::progress::{Progress, Step};
use super::source::Origins;
use super::unpack::Limits;
use super::version::Version;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use sha1::Sha1;
use sha2::Sha512;
use std::collections::BTreeMap;
use std::fs::File;
use wp_codebox_contracts::{CodedError, hex};

/// Maximum size in bytes of the answer about versions and of a file with one SHA-1.
const SHORT_ANSWER: u64 = 1 << 20;
/// Maximum size of the list of a release's checksums in bytes.
const CHECKSUM_LIST: u64 = 8 << 20;
/// Maximum number of differing files that a message names.
const NAMED: usize = 3;

/// The npm package that is the source if wordpress.org cannot be reached. `tests/provision` pins
/// the same package.
pub(super) struct Package {
    /// Name and version for records and messages.
    pub(super) title: &'static str,
    /// Version of the WordPress core in the package.
    pub(super) wordpress: &'static str,
    path: &'static str,
    pub(super) sha512: &'static str,
    /// Directory of the core in the archive, with a slash at the end.
    pub(super) top: &'static str,
}

pub(super) const PACKAGE: Package = Package {
    title: "npm package wp-studio 1.22.0",
    wordpress: "7.1.1",
    path: "wp-studio/-/wp-studio-1.22.0.tgz",
    sha512: "boMtahkhgWDKKyNTBA1uTK5ghnAmxXhDY6KeQCO9FmcI3/o+YOSq8JwYW5ZYnxHCxH14Jf/mD6CJTBvTWl2Ytw==",
    top: "package/dist/cli/wp-files/latest/wordpress/",
};

/// MD5 of each file of a release by its path.
pub(super) type Checksums = BTreeMap<String, [u8; 16]>;

// The structs for answers have no `deny_unknown_fields`, because wordpress.org can add members to
// its answers at any time.

#[derive(Deserialize)]
struct Offers {
    offers: Vec<Offer>,
}

#[derive(Deserialize)]
struct Offer {
    response: String,
    version: String,
}

#[derive(Deserialize)]
struct Published {
    /// An object with the digest of each file, or `false` for a version without checksums.
    checksums: Value,
}

/// Asks wordpress.org for its newest release.
pub(super) fn latest(fetcher: &Fetcher, origins: &Origins) -> Result<Version, FetchError> {
    let url = format!("{}/core/version-check/1.7/", origins.api);
    let answer = fetcher.bytes(&url, SHORT_ANSWER)?;
    let malformed = |reason: &str| FetchError::Malformed {
        url: url.clone(),
        reason: reason.to_owned(),
    };
    let offers: Offers =
        serde_json::from_slice(&answer).map_err(|error| malformed(&error.to_string()))?;
    // Other responses are `autoupdate`, for older branches, and `development`.
    let is_release = |offer: &&Offer| matches!(offer.response.as_str(), "upgrade" | "latest");
    let offer = offers.offers.iter().find(is_release);
    let offer = offer.ok_or_else(|| malformed("it offers no release"))?;
    Version::parse(&offer.version)
        .ok_or_else(|| malformed(&format!("{:?} is not a version", offer.version)))
}

/// Downloads the archive of a release into a file and returns the published checksums of its files.
pub(super) fn download(
    fetcher: &Fetcher,
    origins: &Origins,
    version: &Version,
    file: &mut File,
    limits: &Limits,
    progress: &dyn Progress,
) -> Result<Checksums, FetchError> {
    let version = version.as_str();
    let url = format!("{}/release/wordpress-{version}.zip", origins.downloads);
    // Fetch the small files before the archive: they show whether the version exists.
    let sha1_url = format!("{url}.sha1");
    let sha1 = fetcher.bytes(&sha1_url, SHORT_ANSWER);
    let sha1 = sha1.map_err(|error| match error {
        FetchError::Status { url, status: 404 } => FetchError::NoRelease {
            version: version.to_owned(),
            url,
        },
        error => error,
    })?;
    let sha1 = String::from_utf8_lossy(&sha1);
    let sha1 = sha1.split_whitespace().next().unwrap_or_default();
    if sha1.len() != 40 || !sha1.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(FetchError::Malformed {
            url: sha1_url,
            reason: "it is not a SHA-1".to_owned(),
        });
    }
    let checksums = checksums(fetcher, origins, version)?;
    let title = format!("WordPress {version}");
    let begin = |total| progress.begin(Step::Download, &title, total);
    let advance = |bytes| progress.advance(bytes);
    let digest = fetcher.download::<Sha1>(&url, limits.archive, file, begin, advance)?;
    if !hex(&digest).eq_ignore_ascii_case(sha1) {
        return Err(FetchError::Digest {
            url,
            kind: "published SHA-1",
            expected: sha1.to_owned(),
        });
    }
    progress.finish();
    Ok(checksums)
}

fn checksums(fetcher: &Fetcher, origins: &Origins, version: &str) -> Result<Checksums, FetchError> {
    let url = format!(
        "{}/core/checksums/1.0/?version={version}&locale=en_US",
        origins.api
    );
    let answer = fetcher.bytes(&url, CHECKSUM_LIST)?;
    let malformed = |reason: String| FetchError::Malformed {
        url: url.clone(),
        reason,
    };
    let published: Published =
        serde_json::from_slice(&answer).map_err(|error| malformed(error.to_string()))?;
    let Value::Object(files) = published.checksums else {
        return Err(malformed(
            "there are no checksums of this version".to_owned(),
        ));
    };
    if files.is_empty() {
        return Err(malformed("the list of checksums is empty".to_owned()));
    }
    files
        .into_iter()
        .map(|(path, digest)| match digest.as_str().and_then(md5_of) {
            Some(md5) => Ok((path, md5)),
            None => Err(malformed(format!("{digest} is not an MD5"))),
        })
        .collect()
}

fn md5_of(text: &str) -> Option<[u8; 16]> {
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = digits.then(|| u128::from_str_radix(text, 16).ok())?;
    number.map(u128::to_be_bytes)
}

/// Downloads the npm package into a file.
pub(super) fn download_package(
    fetcher: &Fetcher,
    origins: &Origins,
    package: &Package,
    file: &mut File,
    limits: &Limits,
    progress: &dyn Progress,
) -> Result<(), FetchError> {
    let url = format!("{}/{}", origins.registry, package.path);
    let title = format!("WordPress {} ({})", package.wordpress, package.title);
    let begin = |total| progress.begin(Step::Download, &title, total);
    let advance = |bytes| progress.advance(bytes);
    let digest = fetcher.download::<Sha512>(&url, limits.archive, file, begin, advance)?;
    if STANDARD.encode(digest) != package.sha512 {
        return Err(FetchError::Digest {
            url,
            kind: "pinned SHA-512",
            expected: package.sha512.to_owned(),
        });
    }
    progress.finish();
    Ok(())
}

/// Files of a release differ from those that wordpress.org published.
#[derive(Debug, thiserror::Error, CodedError)]
#[error(
    "{} files of WordPress {version} differ from those that wordpress.org published: {}",
    .differences.len(),
    named(.differences)
)]
#[code(
    WordpressInvalid,
    hint = "do not use the archive; try again later, and report it to wordpress.org if the files still differ"
)]
pub(super) struct Differs {
    version: String,
    differences: Vec<String>,
}

fn named(differences: &[String]) -> String {
    let mut named = differences.iter().take(NAMED).cloned().collect::<Vec<_>>();
    if differences.len() > NAMED {
        named.push("…".to_owned());
    }
    named.join(", ")
}

/// Compares the files of a release with the published checksums. Skips files below `wp-content`, as
/// WordPress itself does: default themes and plugins have releases of their own. For these files
/// the digest of the archive was checked.
pub(super) fn compare(
    version: &Version,
    files: &Checksums,
    published: &Checksums,
) -> Result<(), Differs> {
    let is_core = |path: &str| !path.starts_with("wp-content/");
    let mut differences = Vec::new();
    for (path, md5) in published.iter().filter(|(path, _)| is_core(path)) {
        match files.get(path) {
            Some(found) if found == md5 => {}
            Some(_) => differences.push(format!("{path:?} has different contents")),
            None => differences.push(format!("{path:?} is missing")),
        }
    }
    for path in files.keys().filter(|path| is_core(path)) {
        if !published.contains_key(path) {
            differences.push(format!("{path:?} is not part of the release"));
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(Differs {
        version: version.as_str().to_owned(),
        differences,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::ErrorCode;

    fn list(rows: &[(&str, u8)]) -> Checksums {
        let rows = rows.iter();
        rows.map(|(path, byte)| ((*path).to_owned(), [*byte; 16]))
            .collect()
    }

    #[test]
    fn missing_changed_and_additional_core_files_are_differences() {
        let version = Version::parse("6.9").unwrap();
        let published = list(&[
            ("a.php", 1),
            ("wp-includes/b.php", 2),
            ("wp-content/c.php", 3),
        ]);
        let compared = |files: &[(&str, u8)]| compare(&version, &list(files), &published);
        let whole = [("a.php", 1), ("wp-includes/b.php", 2)];
        compared(&whole).unwrap();
        compared(
            &[
                &whole[..],
                &[("wp-content/c.php", 9), ("wp-content/d.php", 4)],
            ]
            .concat(),
        )
        .unwrap();
        for (files, difference) in [
            (vec![("a.php", 1)], "\"wp-includes/b.php\" is missing"),
            (
                vec![("a.php", 9), whole[1]],
                "\"a.php\" has different contents",
            ),
            (
                [&whole[..], &[("wp-admin/x.php", 5)]].concat(),
                "\"wp-admin/x.php\" is not part of the release",
            ),
        ] {
            let error = compared(&files).unwrap_err();
            assert_eq!(error.differences, [difference]);
            let body = error.body();
            assert_eq!(body.code, ErrorCode::WordpressInvalid);
            assert!(body.message.contains(difference), "{}", body.message);
        }
    }

    #[test]
    fn md5_is_read_from_exactly_32_hexadecimal_digits() {
        let good = "5d41402abc4b2a76b9719d911017c592";
        assert_eq!(hex(&md5_of(good).unwrap()), good);
        for bad in [
            "",
            &good[1..],
            "+d41402abc4b2a76b9719d911017c592",
            &format!("{good}0"),
        ] {
            assert_eq!(md5_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn long_list_of_differences_is_shortened_in_the_message() {
        let version = Version::parse("6.9").unwrap();
        let published: Checksums = (0..100).map(|n| (format!("{n}.php"), [0; 16])).collect();
        let body = compare(&version, &Checksums::new(), &published)
            .unwrap_err()
            .body();
        assert!(body.message.starts_with("100 files"), "{}", body.message);
        assert!(body.message.len() < 300, "{}", body.message);
    }
}
