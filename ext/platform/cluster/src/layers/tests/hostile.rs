//! Layer streams that packing never writes.

use super::*;
use wp_codebox_contracts::CodedError;

/// A layer stream built by hand. Names are not checked.
#[derive(Clone)]
struct Stream(Vec<u8>);

impl Stream {
    fn new() -> Self {
        Self(b"wp-codebox layer 1\n".to_vec())
    }
    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
    fn text(self, bytes: &[u8]) -> Self {
        self.raw(&(bytes.len() as u16).to_le_bytes()).raw(bytes)
    }
    fn enter(self, name: &[u8]) -> Self {
        self.raw(b"D").text(name)
    }
    fn leave(self) -> Self {
        self.raw(b"U")
    }
    fn file(self, name: &[u8], bytes: &[u8]) -> Self {
        self.sized(name, bytes.len() as u64).raw(bytes)
    }
    fn sized(self, name: &[u8], size: u64) -> Self {
        self.raw(b"F").text(name).raw(b"-").raw(&size.to_le_bytes())
    }
    fn link(self, name: &[u8], target: &[u8]) -> Self {
        self.raw(b"L").text(name).text(target)
    }
    fn end(self) -> Self {
        self.raw(b"E")
    }
}

/// Unpacks into a new directory beside a file. Checks that the file is unchanged and that a stream
/// that is refused leaves no directory.
fn unpack_alone(bytes: &[u8], digest: &Sha256Hex) -> Result<Unpacked, LayerError> {
    let work = temporary();
    std::fs::write(work.path().join("beside"), "untouched").unwrap();
    let into = work.path().join("layer");
    let unpacked = unpack(bytes, digest, &into, &CaptureLimits::TREE);
    let mut names: Vec<_> = std::fs::read_dir(work.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    match unpacked {
        Ok(_) => assert_eq!(names, ["beside", "layer"]),
        Err(_) => assert_eq!(names, ["beside"]),
    }
    assert_eq!(
        std::fs::read(work.path().join("beside")).unwrap(),
        b"untouched"
    );
    unpacked
}

fn judged(stream: &Stream) -> Result<Unpacked, LayerError> {
    unpack_alone(&gzip(&stream.0), &wp_codebox_artifacts::sha256(&stream.0))
}

#[test]
fn stream_with_a_path_as_name_a_duplicate_or_an_entry_below_a_link_is_refused_and_leaves_nothing() {
    let good = Stream::new()
        .enter(b"a")
        .file(b"f", b"x")
        .leave()
        .link(b"b", b"/etc")
        .end();
    assert_eq!(
        judged(&good).unwrap(),
        Unpacked {
            entries: 3,
            bytes: 1
        }
    );
    let long = vec![b'n'; 256];
    for (what, stream) in [
        ("absolute path", Stream::new().file(b"/tmp/x", b"x").end()),
        ("dots", Stream::new().file(b"..", b"x").end()),
        (
            "dots on the way",
            Stream::new().file(b"../beside", b"x").end(),
        ),
        (
            "directory above",
            Stream::new()
                .enter(b"..")
                .file(b"beside", b"x")
                .leave()
                .end(),
        ),
        ("own directory", Stream::new().enter(b".").leave().end()),
        ("path of two", Stream::new().file(b"a/b", b"x").end()),
        ("empty name", Stream::new().file(b"", b"x").end()),
        ("NUL in a name", Stream::new().file(b"a\0b", b"x").end()),
        ("long name", Stream::new().file(&long, b"x").end()),
        (
            "file twice",
            Stream::new().file(b"a", b"x").file(b"a", b"y").end(),
        ),
        (
            "directory twice",
            Stream::new().enter(b"a").leave().enter(b"a").leave().end(),
        ),
        (
            "directory over a link",
            Stream::new()
                .link(b"a", b"/etc")
                .enter(b"a")
                .file(b"f", b"x")
                .leave()
                .end(),
        ),
        (
            "file over a link",
            Stream::new()
                .link(b"a", b"../beside")
                .file(b"a", b"x")
                .end(),
        ),
        (
            "names out of order",
            Stream::new().file(b"b", b"x").file(b"a", b"x").end(),
        ),
        (
            "leaves the root",
            Stream::new().leave().file(b"beside", b"x").end(),
        ),
        ("ends inside", Stream::new().enter(b"a").end()),
        ("empty target", Stream::new().link(b"a", b"").end()),
        ("NUL in a target", Stream::new().link(b"a", b"b\0c").end()),
        ("unknown kind", Stream::new().raw(b"Z").end()),
        (
            "unknown mode",
            Stream::new()
                .raw(b"F")
                .text(b"a")
                .raw(b"s")
                .raw(&[0; 8])
                .end(),
        ),
        ("another format", Stream(b"wp-codebox layer 2\nE".to_vec())),
        ("nothing", Stream(Vec::new())),
    ] {
        let error = judged(&stream).expect_err(what);
        assert_eq!(
            error.code(),
            ErrorCode::ClusterUnreadable,
            "{what}: {error}"
        );
    }
}

#[test]
fn layer_cut_at_any_byte_or_with_more_bytes_or_another_digest_is_refused_and_leaves_nothing() {
    let stream = Stream::new()
        .enter(b"a")
        .file(b"f", b"content")
        .leave()
        .link(b"b", b"c")
        .end();
    let digest = wp_codebox_artifacts::sha256(&stream.0);
    for length in 0..stream.0.len() {
        let cut = gzip(&stream.0[..length]);
        let error = unpack_alone(&cut, &digest).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ClusterUnreadable, "{length}");
    }
    let whole = gzip(&stream.0);
    for length in 0..whole.len() {
        assert!(unpack_alone(&whole[..length], &digest).is_err(), "{length}");
    }
    // The digest does not cover bytes after the end record, so they must be refused.
    let more = stream.clone().raw(b"x");
    let error = unpack_alone(&gzip(&more.0), &digest).unwrap_err();
    assert!(matches!(error, LayerError::Damaged { .. }), "{error}");
    let other = wp_codebox_artifacts::sha256(b"other");
    let error = unpack_alone(&whole, &other).unwrap_err();
    assert!(matches!(error, LayerError::Digest { .. }), "{error}");
    unpack_alone(&whole, &digest).unwrap();
}

#[test]
fn stated_file_size_and_directory_depth_beyond_the_limits_are_refused() {
    let huge = Stream::new().sized(b"a", u64::MAX);
    let too_large = Stream::new().sized(b"a", CaptureLimits::TREE.file_bytes + 1);
    for stream in [huge, too_large] {
        let error = judged(&stream).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ClusterObjectTooLarge);
    }
    // 10,000 levels.
    let mut deep = Stream::new();
    for _ in 0..10_000 {
        deep = deep.enter(b"d");
    }
    let error = judged(&deep).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ClusterObjectTooLarge, "{error}");
    let mut deepest = Stream::new();
    for _ in 0..CaptureLimits::TREE.depth {
        deepest = deepest.enter(b"d");
    }
    for _ in 0..CaptureLimits::TREE.depth {
        deepest = deepest.leave();
    }
    judged(&deepest.end()).unwrap();
}

#[test]
fn names_that_are_not_utf8_keep_their_bytes() {
    let work = temporary();
    let stream = Stream::new()
        .file(b"\x80\xff", b"1")
        .link(b"\xfe", b"\xff\x80")
        .end();
    // The names are in the order of their bytes: 0x80, 0xfe.
    let digest = wp_codebox_artifacts::sha256(&stream.0);
    let into = work.path().join("l");
    let bytes = gzip(&stream.0);
    unpack(bytes.as_slice(), &digest, &into, &CaptureLimits::TREE).unwrap();
    let tree = read_tree(&into);
    assert_eq!(
        tree.0[&b"\x80\xff".to_vec()],
        trees::Entry::File(false, b"1".to_vec())
    );
    assert_eq!(
        tree.0[&b"\xfe".to_vec()],
        trees::Entry::Link(b"\xff\x80".to_vec())
    );
}

#[test]
fn layer_is_not_unpacked_into_an_existing_directory() {
    let work = temporary();
    let stream = Stream::new().end();
    let digest = wp_codebox_artifacts::sha256(&stream.0);
    let bytes = gzip(&stream.0);
    let into = work.path().join("l");
    std::fs::create_dir(&into).unwrap();
    std::fs::write(into.join("f"), "x").unwrap();
    let unpacked = unpack(bytes.as_slice(), &digest, &into, &CaptureLimits::TREE);
    assert!(matches!(unpacked, Err(LayerError::Write { .. })));
    assert!(into.join("f").exists(), "what was there stays");
    symlink(work.path(), work.path().join("link")).unwrap();
    let link = work.path().join("link");
    assert!(unpack(bytes.as_slice(), &digest, &link, &CaptureLimits::TREE).is_err());
}
