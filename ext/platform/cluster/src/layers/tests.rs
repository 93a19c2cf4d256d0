//! Layers of generated and hostile trees, and the cache of a node.

mod cache;
mod hostile;
mod trees;

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use trees::{Random, Tree, read_tree, write_tree};
use wp_codebox_artifacts::{CaptureLimits, Dir};
use wp_codebox_contracts::{CodedError, ErrorCode, Sha256Hex};

/// Number of random cases of each property test.
const CASES: u64 = 60;

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn packed(path: &Path) -> Result<Packed, LayerError> {
    let root = Dir::open(path).unwrap();
    pack_to(root.as_fd(), &PackRules::whole(), std::io::sink())
}

fn code(path: &Path) -> ErrorCode {
    packed(path).unwrap_err().code()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn equal_trees_have_equal_digests_and_every_change_gives_another_one() {
    let (one, other) = (temporary(), temporary());
    for number in 0..CASES {
        let random = &mut Random::new(number);
        let tree = Tree::random(random);
        let (first, second) = (
            one.path().join(number.to_string()),
            other.path().join(number.to_string()),
        );
        write_tree(&first, &tree, false);
        // The same entries in the opposite order, with other times and other mode bits except the
        // executable bit.
        write_tree(&second, &tree, true);
        let digest = packed(&first).unwrap().digest;
        assert_eq!(packed(&second).unwrap().digest, digest, "case {number}");
        let changed = tree.changed(random);
        assert_ne!(changed, tree, "case {number}");
        let third = one.path().join(format!("{number}-changed"));
        write_tree(&third, &changed, false);
        assert_ne!(packed(&third).unwrap().digest, digest, "case {number}");
    }
}

#[test]
fn unpacked_layer_has_the_entries_bytes_modes_and_links_of_its_source() {
    let work = temporary();
    for number in 0..CASES {
        let tree = Tree::random(&mut Random::new(1000 + number));
        let source = work.path().join(format!("s{number}"));
        write_tree(&source, &tree, false);
        let root = Dir::open(&source).unwrap();
        let layer = pack(root.as_fd(), &PackRules::whole(), work.path()).unwrap();
        let into = work.path().join(format!("u{number}"));
        let unpacked = unpack(
            &layer.file,
            &layer.packed.digest,
            &into,
            &CaptureLimits::TREE,
        )
        .unwrap();
        assert_eq!(read_tree(&into), tree, "case {number}");
        let counts = (layer.packed.entries, layer.packed.bytes);
        assert_eq!((unpacked.entries, unpacked.bytes), counts, "case {number}");
        assert_eq!(packed(&into).unwrap().digest, layer.packed.digest);
    }
}

#[test]
fn digest_does_not_depend_on_the_compression() {
    let work = temporary();
    let source = work.path().join("s");
    write_tree(&source, &Tree::random(&mut Random::new(7)), false);
    let root = Dir::open(&source).unwrap();
    let mut plain = Vec::new();
    let digest = pack_to(root.as_fd(), &PackRules::whole(), &mut plain)
        .unwrap()
        .digest;
    for (name, level) in [("a", Compression::none()), ("b", Compression::best())] {
        let mut encoder = GzEncoder::new(Vec::new(), level);
        encoder.write_all(&plain).unwrap();
        let bytes = encoder.finish().unwrap();
        let into = work.path().join(name);
        unpack(bytes.as_slice(), &digest, &into, &CaptureLimits::TREE).unwrap();
        assert_eq!(read_tree(&into), read_tree(&source));
    }
}

#[test]
fn directory_of_git_is_left_out_at_every_depth_and_similar_names_stay() {
    let work = temporary();
    let source = work.path().join("s");
    for directory in [".git/hooks", "a/.git", "a/.GIT", "a/.github", ".gitignored"] {
        std::fs::create_dir_all(source.join(directory)).unwrap();
    }
    std::fs::write(source.join("b.git"), "").unwrap();
    let root = Dir::open(&source).unwrap();
    let layer = pack(root.as_fd(), &PackRules::whole(), work.path()).unwrap();
    assert_eq!(layer.packed.git_entries, 3);
    let into = work.path().join("u");
    let digest = &layer.packed.digest;
    unpack(&layer.file, digest, &into, &CaptureLimits::TREE).unwrap();
    let names = [".gitignored", "a", "a/.github", "b.git"];
    let found: Vec<_> = read_tree(&into).0.into_keys().collect();
    assert_eq!(found, names.map(|name| name.as_bytes().to_vec()));
}

#[test]
fn special_files_set_id_bits_and_mount_points_are_refused_with_their_path() {
    let work = temporary();
    let source = work.path();
    std::fs::create_dir(source.join("d")).unwrap();
    let file = source.join("d/run");
    std::fs::write(&file, "x").unwrap();
    // Controls: the directory without special files and set-id bits, and with a set-group-id
    // directory, whose bit only decides about the group of new files.
    packed(source).unwrap();
    std::fs::set_permissions(source.join("d"), PermissionsExt::from_mode(0o2755)).unwrap();
    packed(source).unwrap();
    for mode in [0o4755, 0o2755, 0o4644] {
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let error = packed(source).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MountSpecialFile, "{mode:o}");
        assert!(error.to_string().contains("\"d/run\""), "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &file, kind, rustix::fs::Mode::RWXU, 0).unwrap();
    let error = packed(source).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MountSpecialFile);
    assert!(error.to_string().contains("FIFO"), "{error}");
    std::fs::remove_file(&file).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(&file).unwrap();
    assert_eq!(code(source), ErrorCode::MountSpecialFile);
    drop(socket);
    std::fs::remove_file(&file).unwrap();
    // /proc is a mount point below /.
    let root = Dir::open(Path::new("/")).unwrap();
    let rules = PackRules::only(&["proc"]);
    let error = pack_to(root.as_fd(), &rules, std::io::sink()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MountUnreadable);
    assert!(error.to_string().contains("mount point"), "{error}");
}

#[test]
fn tree_beyond_a_limit_is_refused() {
    let work = temporary();
    let source = work.path().join("s");
    std::fs::create_dir_all(source.join("a/b")).unwrap();
    std::fs::write(source.join("a/b/f"), "12345").unwrap();
    std::fs::write(source.join("a/g"), "12345").unwrap();
    let exact = CaptureLimits {
        depth: 2,
        entries: 4,
        path_bytes: 5,
        file_bytes: 5,
        total_bytes: 10,
    };
    let root = Dir::open(&source).unwrap();
    let pack = |limits| {
        let rules = PackRules::whole().limited(limits);
        let mut plain = Vec::new();
        pack_to(root.as_fd(), &rules, &mut plain).map(|packed| (packed.digest, plain))
    };
    let (digest, plain) = pack(exact).unwrap();
    let bytes = gzip(&plain);
    let unpack = |limits| {
        let into = work.path().join("u");
        let unpacked = unpack(bytes.as_slice(), &digest, &into, &limits);
        assert_eq!(into.exists(), unpacked.is_ok());
        let _ = std::fs::remove_dir_all(&into);
        unpacked
    };
    unpack(exact).unwrap();
    for limits in [
        CaptureLimits { depth: 1, ..exact },
        CaptureLimits {
            entries: 3,
            ..exact
        },
        CaptureLimits {
            path_bytes: 4,
            ..exact
        },
        CaptureLimits {
            file_bytes: 4,
            ..exact
        },
        CaptureLimits {
            total_bytes: 9,
            ..exact
        },
    ] {
        let error = pack(limits).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MountTooLarge, "{limits:?}");
        let error = unpack(limits).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ClusterObjectTooLarge, "{limits:?}");
    }
}

#[test]
fn holes_of_sparse_files_are_unpacked_as_holes() {
    let work = temporary();
    let source = work.path().join("s");
    std::fs::create_dir(&source).unwrap();
    let file = std::fs::File::create(source.join("sparse")).unwrap();
    file.set_len(32 << 20).unwrap();
    file.write_all_at(b"middle", 16 << 20).unwrap();
    std::fs::write(source.join("full"), vec![7; 1 << 20]).unwrap();
    let root = Dir::open(&source).unwrap();
    let layer = pack(root.as_fd(), &PackRules::whole(), work.path()).unwrap();
    assert!(layer.compressed_bytes < 1 << 20);
    let into = work.path().join("u");
    let digest = &layer.packed.digest;
    unpack(&layer.file, digest, &into, &CaptureLimits::TREE).unwrap();
    let blocks = |name| std::fs::metadata(into.join(name)).unwrap().blocks();
    assert_eq!(
        std::fs::metadata(into.join("sparse")).unwrap().len(),
        32 << 20
    );
    assert!(blocks("sparse") <= 256, "{}", blocks("sparse"));
    assert!(blocks("full") >= 2048, "control: these blocks are filled");
    assert!(
        std::fs::read(into.join("sparse")).unwrap()
            == std::fs::read(source.join("sparse")).unwrap()
    );
}

#[test]
fn file_that_changes_while_it_is_packed_is_an_error() {
    use rustix::fs::{Timespec, Timestamps};
    let work = temporary();
    let path = work.path().join("f");
    let root = Dir::open(work.path()).unwrap();
    // The writer of the layer changes the file when the first piece of it comes.
    struct Changing<'p>(Option<&'p dyn Fn()>);
    impl Write for Changing<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if bytes.len() > 1000
                && let Some(change) = self.0.take()
            {
                change();
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let pack = |change: Option<&dyn Fn()>| {
        let file = std::fs::File::create(&path).unwrap();
        file.write_all_at(&[0; 300_000], 0).unwrap();
        // An old modification time, so that every write changes it, even within one clock tick.
        let old = Timespec {
            tv_sec: 1_000_000,
            tv_nsec: 0,
        };
        let times = Timestamps {
            last_access: old,
            last_modification: old,
        };
        rustix::fs::futimens(&file, &times).unwrap();
        pack_to(root.as_fd(), &PackRules::whole(), Changing(change))
    };
    let write_at = |at| {
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(b"more", at).unwrap();
    };
    for change in [
        &(|| write_at(300_000)) as &dyn Fn(),
        // The size stays: this changes the part that was read already.
        &|| write_at(0),
        &|| {
            std::fs::File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(1)
                .unwrap()
        },
    ] {
        let error = pack(Some(change)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::BaselineChanged, "{error}");
    }
    pack(None).unwrap();
}

#[test]
fn single_files_are_packed_under_their_names_and_unsorted_names_are_refused() {
    let work = temporary();
    let open = |name: &str| {
        let path = work.path().join(name);
        std::fs::write(&path, name).unwrap();
        std::fs::File::open(path).unwrap()
    };
    let mut files = vec![("f0".to_owned(), open("x")), ("f1".to_owned(), open("y"))];
    let layer = pack_files(&mut files, work.path()).unwrap();
    // The files can be packed again, although their positions are at the end now.
    let again = pack_files(&mut files, work.path()).unwrap();
    assert_eq!(again.packed, layer.packed);
    let into = work.path().join("u");
    let digest = &layer.packed.digest;
    unpack(&layer.file, digest, &into, &CaptureLimits::TREE).unwrap();
    assert_eq!(std::fs::read(into.join("f1")).unwrap(), b"y");
    files.reverse();
    assert!(pack_files(&mut files, work.path()).is_err());
}

#[test]
fn layer_is_uploaded_once_and_again_when_the_server_lost_it_or_a_file_changed() {
    use crate::objects::tests::MemoryObjects;
    let (work, temp) = (temporary(), temporary());
    let (objects, store) = (MemoryObjects::default(), LayerStore::new(temp.path()));
    let rules = PackRules::whole();
    let file = work.path().join("f");
    std::fs::write(&file, "one").unwrap();
    let root = Dir::open(work.path()).unwrap();
    let put = || store.put_missing(&objects, root.as_fd(), &rules).unwrap();
    let first = put();
    assert_eq!(objects.take_puts(), [format!("layer.{first}")]);
    assert_eq!(put(), first);
    assert_eq!(objects.take_puts().len(), 0);
    // `confirm` uploads the layer again only if the server no longer has it.
    let mut input = LayerInput {
        digest: first.clone(),
        from: LayerSource::Directory {
            root: std::fs::File::open(work.path()).unwrap().into(),
            rules: rules.clone(),
        },
    };
    assert!(!store.confirm(&objects, &mut input).unwrap());
    objects.lock().clear();
    assert!(store.confirm(&objects, &mut input).unwrap());
    assert_eq!(objects.take_puts(), [format!("layer.{first}")]);
    std::fs::write(&file, "two").unwrap();
    let second = put();
    assert_ne!(second, first);
    assert_eq!(objects.take_puts(), [format!("layer.{second}")]);
}

#[test]
fn rules_with_a_list_of_paths_pack_neither_wp_config_nor_uploads_nor_other_themes() {
    let work = temporary();
    for path in [
        "wp-load.php",
        "wp-config.php",
        "wp-admin/a.php",
        "wp-content/uploads/private.pdf",
        "wp-content/themes/twenty/style.css",
        "wp-content/themes/other/style.css",
    ] {
        let path = work.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    let root = Dir::open(work.path()).unwrap();
    let rules = PackRules::only(&[
        "wp-load.php",
        "wp-admin",
        "wp-content/themes/twenty",
        "missing",
    ]);
    let temp = temporary();
    let layer = pack(root.as_fd(), &rules, temp.path()).unwrap();
    let into = temp.path().join("u");
    let digest = &layer.packed.digest;
    unpack(&layer.file, digest, &into, &CaptureLimits::TREE).unwrap();
    let files: Vec<String> = read_tree(&into)
        .0
        .into_iter()
        .filter(|(_, node)| matches!(node, trees::Entry::File(..)))
        .map(|(path, _)| String::from_utf8(path).unwrap())
        .collect();
    assert_eq!(
        files,
        [
            "wp-admin/a.php",
            "wp-content/themes/twenty/style.css",
            "wp-load.php"
        ]
    );
}
