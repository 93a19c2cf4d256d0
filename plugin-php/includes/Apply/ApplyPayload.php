<?php
/**
 * Approved change and its data, passed to the host plugin that applies it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Apply;

use WPCodebox\AuditTrail;
use WPCodebox\Authority;
use WPCodebox\Capabilities;
use WPCodebox\DirectApply\SensitiveFiles;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\GitBranch\GitBranch;
use WPCodebox\Requester;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Builds the payload only from a bundle that verifies, that a trusted key signed, and whose baseline matches
 * the target's current files.
 */
final class ApplyPayload {

	/**
	 * Creates the builder with its dependencies.
	 *
	 * @param ArtifactService $artifacts Reader of the artifact bundles.
	 * @param ApplyTargets    $targets   Resolves host directories.
	 * @param BundleTrust     $trust     Signing keys that this site trusts.
	 * @param AuditTrail      $audit     Audit log; supplies requester and approver.
	 * @param Settings        $settings  Settings; they may forbid users to approve changes that they requested.
	 * @param Capabilities    $capabilities Permission checks of the user who confirms that a browser uploaded the contents.
	 * @param SensitiveFiles  $sensitive Files that programs run by themselves.
	 */
	public function __construct(
		private readonly ArtifactService $artifacts,
		private readonly ApplyTargets $targets,
		private readonly BundleTrust $trust,
		private readonly AuditTrail $audit,
		private readonly Settings $settings,
		private readonly Capabilities $capabilities,
		private readonly SensitiveFiles $sensitive
	) {}

	/**
	 * Verifies, filters and checks a bundle; returns the payload for the host plugin.
	 *
	 * @param array<string, mixed> $input     Input of a preflight or apply.
	 * @param Authority            $authority User or operator the call runs as.
	 * @param ConfirmationRule     $rule      How to treat a missing confirmation.
	 * @return array<string, mixed>
	 * @throws Failure When the change must not be applied.
	 */
	public function build( array $input, Authority $authority, ConfirmationRule $rule = ConfirmationRule::Enforce ): array {
		$this->assert_file_changes();
		$confirmed = $this->confirms_origin( $input, $authority );
		$artifact  = $this->artifacts->artifact( $input );
		$reference = (string) ( $artifact['run_id'] ?? $this->artifacts->reference( $input ) );
		$approved  = array_values( array_unique( array_map( 'strval', (array) ( $input['approved_files'] ?? [] ) ) ) );
		$target    = (array) ( $input['apply_target'] ?? [] );
		$request   = [ 'approved_files' => $approved ];
		if ( ! empty( $input['manifest_sha256'] ) ) {
			$request['manifest_sha256'] = (string) $input['manifest_sha256'];
		}
		// Targets are read only from a bundle that verifies; for any other bundle the preflight reports the
		// violations.
		$sound   = true === ( $this->artifacts->verification( $artifact )['valid'] ?? false );
		$targets = $sound ? $this->targets->resolve( $artifact, $approved, $target, $authority ) : [];
		if ( [] !== $targets ) {
			$request['targets'] = $targets;
		}
		if ( $confirmed || ConfirmationRule::Report === $rule ) {
			$request['confirm_browser_origin'] = true;
		}
		$checked = $this->artifacts->preflight( $reference, $request );
		/* translators: %s: status of its signature, as `unsigned`. */
		$sentence   = __( 'The signature status of the bundle is "%s"; only bundles signed by this host or by a trusted key are applied here.', 'codebox' );
		$signature  = (array) ( $checked['signature'] ?? [] );
		$this->trust->assert_for_apply( $signature, $sentence, $confirmed || ConfirmationRule::Report === $rule );
		$of_browser = BundleTrust::is_of_browser( $signature );

		$this->assert_other_user( $artifact );
		$approval = $this->approval( $checked, $targets );
		if ( isset( $input['approval'] ) && ! hash_equals( $approval, (string) $input['approval'] ) ) {
			throw Failure::because( ErrorCode::ArtifactChanged, __( 'What was approved is not what would be applied: the manifest, the approved files, the patch or the directories differ; run a new preflight and approve its result.', 'codebox' ) );
		}
		$payload = $this->audit->approver( $input ) + [
			'requester'               => $this->audit->requester(),
			'artifact_id'             => (string) $checked['artifact_id'],
			'artifact'                => $artifact,
			'approved_files'          => $checked['approved_files'],
			'apply_target'            => [] === $target ? null : $target,
			'patch'                   => (string) $checked['patch'],
			'patch_sha256'            => (string) $checked['patch_sha256'],
			'artifact_content_digest' => $checked['content_digest'],
			// The payload reaches hooks and pending actions, which must not see host paths.
			'artifact_verification'   => array_diff_key( (array) $checked['verification'], [ 'bundleDirectory' => 1 ] ),
			'changed_files'           => $checked['changed_files'],
			'risks'                   => (array) ( $checked['risks'] ?? [] ),
			'mount_patches'           => $checked['mount_patches'] ?? [],
			'manifest_sha256'         => (string) $checked['manifest_sha256'],
			'run_id'                  => (string) $checked['run_id'],
			'targets'                 => $targets,
			'target_differs'          => [] !== $this->targets->differing( $artifact, $targets ),
			'approval'                => $approval,
			'confirm_sensitive'       => true === ( $input['confirm_sensitive'] ?? false ),
			'browser_origin'          => $of_browser,
			'browser_origin_confirmed' => $of_browser && $confirmed,
		];
		// Checked here and not in the adapters, so that no plugin of the site can forget it.
		if ( ConfirmationRule::Enforce === $rule && $this->changes_site() ) {
			$this->sensitive->assert_confirmed( $payload );
		}
		return $payload;
	}

	/**
	 * Returns the approved files that a program runs or obeys by itself, so that an apply needs a confirmation of them.
	 *
	 * @param array<string, mixed> $payload Payload of the apply.
	 * @return list<string>
	 */
	public function confirm_files( array $payload ): array {
		return $this->changes_site() ? $this->sensitive->among( $payload ) : [];
	}

	/** Returns whether an apply may change files of the running site; a commit on a branch changes none. */
	private function changes_site(): bool {
		return GitBranch::ADAPTER !== ApplyAdapters::next( $this->settings );
	}

	/**
	 * Returns the audit field that says a user confirmed contents uploaded by a browser; no field for a change made in a
	 * sandbox of this host.
	 *
	 * @param array<string, mixed> $payload Payload of the apply.
	 * @return array<string, true>
	 */
	public static function origin_record( array $payload ): array {
		return empty( $payload['browser_origin_confirmed'] ) ? [] : [ 'browser_origin_confirmed' => true ];
	}

	/**
	 * Checks whether the input confirms that a browser uploaded the contents. Only the operator and users who may
	 * apply changes can confirm that, even where the ability itself requires only a lesser capability.
	 *
	 * @param array<string, mixed> $input     Input of a preflight or apply.
	 * @param Authority            $authority User or operator the call runs as.
	 * @throws Failure `wp_codebox_forbidden`.
	 */
	private function confirms_origin( array $input, Authority $authority ): bool {
		if ( true !== ( $input['confirm_browser_origin'] ?? false ) ) {
			return false;
		}
		if ( Authority::Operator !== $authority && ! $this->capabilities->allows( Capabilities::APPLY ) ) {
			throw Failure::because(
				ErrorCode::Forbidden,
				/* translators: %s: name of a capability. */
				Sentence::of( __( 'Only a user with the capability %s can confirm that a browser uploaded the contents of a bundle.', 'codebox' ), Capabilities::APPLY )
			);
		}
		return true;
	}

	/**
	 * Fails unless the site permits file changes. WordPress passes only DISALLOW_FILE_MODS to the filter
	 * `file_mod_allowed`; an apply edits code, so this check adds DISALLOW_FILE_EDIT. An adapter that writes
	 * elsewhere, for example to a git branch, returns true from the filter in the context
	 * `wp_codebox_apply`.
	 *
	 * @throws Failure `wp_codebox_file_changes_disallowed`.
	 */
	private function assert_file_changes(): void {
		$allowed = ! ( defined( 'DISALLOW_FILE_MODS' ) && \DISALLOW_FILE_MODS ) && ! ( defined( 'DISALLOW_FILE_EDIT' ) && \DISALLOW_FILE_EDIT );
		// phpcs:ignore WordPress.NamingConventions.PrefixAllGlobals -- core's own filter.
		if ( true !== (bool) apply_filters( 'file_mod_allowed', $allowed, 'wp_codebox_apply' ) ) {
			throw Failure::because(
				ErrorCode::FileChangesDisallowed,
				__( 'This site does not let its files be changed (DISALLOW_FILE_EDIT, DISALLOW_FILE_MODS or the filter file_mod_allowed), so nothing is applied.', 'codebox' ),
				[ __( 'A plugin that writes approved changes to another place can allow this with the filter file_mod_allowed in the context wp_codebox_apply.', 'codebox' ) ]
			);
		}
	}

	/**
	 * Fails when four eyes are required and the current user asked for the change, also on another site: the sites of a network
	 * share their users. The requester is part of the bundle that was just verified.
	 *
	 * @param array<string, mixed> $artifact Bundle that verifies.
	 * @throws Failure `wp_codebox_apply_own_change`.
	 */
	private function assert_other_user( array $artifact ): void {
		if ( $this->settings->four_eyes() && Requester::is_user( $artifact['metadata']['provenance']['requester'] ?? null, get_current_user_id() ) ) {
			throw Failure::because(
				ErrorCode::ApplyOwnChange,
				__( 'You asked for this change, and on this site another user has to approve it.', 'codebox' ),
				[ __( 'Ask a user who may apply changes to review it.', 'codebox' ) ]
			);
		}
	}

	/**
	 * Returns the approval token: an HMAC under a key of this site over the approved content. No other party
	 * can forge a token for another change or directory.
	 *
	 * @param array<string, mixed>  $checked Result of the extension's preflight.
	 * @param array<string, string> $targets Host directory by mount target.
	 */
	private function approval( array $checked, array $targets ): string {
		$files = array_map( 'strval', $checked['approved_files'] );
		sort( $files );
		ksort( $targets );
		// A path contains no NUL, so NUL separates the entries; the number of files separates files from
		// targets.
		$bound = array_merge( [ (string) $checked['manifest_sha256'], (string) $checked['patch_sha256'], (string) count( $files ) ], $files, array_keys( $targets ), array_values( $targets ) );
		return hash_hmac( 'sha256', implode( "\0", $bound ), wp_salt( 'auth' ) );
	}

	/**
	 * Returns the payload in a form that JSON can carry: a patch that is not UTF-8 becomes base64, because a
	 * JSON encoder would silently replace its bytes.
	 *
	 * @param array<string, mixed> $payload Payload of the apply.
	 * @return array<string, mixed>
	 */
	public function printable( array $payload ): array {
		$payload                  = self::with_text_patch( $payload );
		$payload['mount_patches'] = array_map( [ self::class, 'with_text_patch' ], $payload['mount_patches'] );
		return $payload;
	}

	/**
	 * Replaces a `patch` that is not UTF-8 by `patch_base64`.
	 *
	 * @param array<string, mixed> $row Row with `patch`.
	 * @return array<string, mixed>
	 */
	private static function with_text_patch( array $row ): array {
		if ( isset( $row['patch'] ) && 1 !== preg_match( '//u', (string) $row['patch'] ) ) {
			// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- bytes for JSON, not obfuscation.
			$row['patch_base64'] = base64_encode( (string) $row['patch'] );
			unset( $row['patch'] );
		}
		return $row;
	}
}
