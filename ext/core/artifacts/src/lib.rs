//! Artifact bundles: directories with the changes that a guest made. Other hosts and reviewers can
//! verify and review a bundle.
//!
//! Data flow: [`capture`] reads an overlay's upper directory into [`MountChanges`].
//! [`render_mount_patch`] and [`mount_entries`] turn the changes into a patch and `changed-files`
//! entries. [`write_bundle`] writes and signs the bundle. [`verify_bundle`] checks a bundle of
//! any origin. [`preflight`] reduces a bundle to the approved files. [`Store`] holds the bundles
//! of a site. [`AuditLog`] records what was done with them, e.g. an approval. [`write_archive`] and
//! [`import`] transfer bundles between hosts. [`compose`] writes a bundle from contents that a
//! browser uploaded. [`EpisodeBuilder`] writes the trace of an episode and
//! [`validate_episode_trace`] checks one.
//!
//! Invariants: every file of a bundle, mount or guest is opened with `openat2` relative to a
//! directory descriptor, and symbolic links in its path are never followed. The crate uses neither
//! network nor environment variables. Bundles that are written from equal inputs have equal bytes.
#![forbid(unsafe_code)]

mod attestation;
mod bundle;
mod canonical;
mod capture;
mod changed_files;
mod compose;
mod digest;
mod dirfd;
mod episode;
mod json;
mod lock_files;
mod patch;
mod php_syntax;
mod preflight;
mod removal;
mod risks;
mod snapshot;
mod store;
mod transfer;
mod verify;

pub use attestation::{
    AttestationError, HostKey, KeyError, PublicKey, Rotated, SignatureCoverage, SignatureReport,
    SignatureStatus, TrustedKeys, open_document, sign_document,
};
pub use bundle::{
    Approvable, ArtifactContent, ArtifactFile, BundleError, BundleInputs, BundleMount,
    BundleSigner, Durability, EpisodeFiles, EvidenceDocument, ExecutionRecord, FollowUpInputs,
    RenameMode, SecretLocation, WrittenBundle, check_room, find_secret, left_out, text_ends,
    write_bundle, write_bundle_as,
};
pub use canonical::{
    CanonicalError, MAX_DEPTH, MAX_ITEMS, MAX_KEYS, OverLimit, canonical_json, canonical_value,
};
pub use capture::{
    CaptureError, CaptureLimits, Change, CopyReport, EntryChange, ExcludeRules, FileMode,
    LayerError, LeftOut, Links, MergeError, MountChanges, Node, OmitReason, Omitted, Shadow,
    TreeError, TreeScan, apply_layer, capture, capture_difference, changes_since, copy_tree,
    find_removed_directories, scan_tree, write_layer, write_mask,
};
pub use changed_files::{ChangedFilesError, MountNames, mount_entries, read_changed_files};
pub use compose::{
    BaselineSource, ComposeError, ComposeRequest, ComposeRoot, ComposeScope, ComposeStatus,
    Composed, MAX_UPLOADED_BYTES, MAX_UPLOADED_FILES, UploadedFile, compose,
};
pub use digest::{
    CONTENT_INPUTS, content_digest, file_list_digest, manifest_self_hash,
    reference_manifest_digest, replay_index_digest, sha256, sha256_of_file,
};
pub use dirfd::{Dir, SparseWriter};
pub use episode::{
    ClosedEpisode, EpisodeArtifacts, EpisodeBuilder, EpisodeError, EpisodePart, EpisodeStart,
    MAX_TRACE_BYTES, MAX_TRACE_ISSUES, ObservationInput, SnapshotInput, StepInput, StepObservation,
    TraceIssue, TraceValidation, cut_episode, validate_episode_trace,
};
pub use json::{JsText, Json, JsonError};
pub use patch::{
    Block, FileStats, FilterError, PatchError, Rename, RenderedPatch, filter_patch, find_renames,
    needs_quoting, parse_patch, quote_name, render_mount_patch, split_patch, terminal_name,
    unquote_name,
};
pub use php_syntax::{InvalidPhp, PHP_SYNTAX_FILE, PHP_SYNTAX_KIND, PHP_SYNTAX_SCHEMA, PhpSyntax};
pub use preflight::{
    BrowserOriginRule, Conflict, MountPatch, Preflight, PreflightError, PreflightRequest,
    SignatureRule, WholeBundle, preflight, whole_bundle,
};
pub use removal::{RemovalError, remove_tree, remove_tree_in};
pub use risks::{PathRisk, path_risks};
pub use snapshot::{
    LayerSnapshot, LayerSnapshotError, SnapshotEntry, SnapshotNode, mark_special_files,
    snapshot_layer, verify_layer,
};
pub use store::{
    Appended, AuditAnchor, AuditEntry, AuditError, AuditExcerpt, AuditLog, AuditOperations,
    AuditReading, AuditWindow, BundleRow, Discarded, StateVersionError, Store, StoreError,
    StoredBundle, VerifiedLog, check_state_version, write_state_version,
};
pub use transfer::{
    AdoptError, ArchiveError, ArchiveReport, DownloadError, ImportError, ImportRules, ImportStatus,
    Imported, MemberSet, MembersError, Replace, adopt, import, write_archive,
};
pub use verify::{Verification, VerifyOptions, directory_content_digest, verify_bundle};
