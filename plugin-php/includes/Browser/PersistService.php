<?php
/**
 * Stores contents that a browser uploaded as a bundle.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use Throwable;
use WPCodebox\Apply\ArtifactService;
use WPCodebox\Apply\BundleRecord;
use WPCodebox\AuditTrail;
use WPCodebox\Connector\Authorization;
use WPCodebox\Connector\Scope;
use WPCodebox\Connector\TrustedCallers;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Host\SingleFilePlugins;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * The extension computes the change from the code with which the session began and from the uploaded contents; what the
 * caller says about changed files, patch or digests is not used. It signs the bundle as one from a browser, which no
 * rule for trusted signatures accepts. The caller chooses neither origin nor baseline nor signer.
 */
final class PersistService {

	/** Event in the audit log. */
	private const EVENT = 'persist-browser-artifact';

	/** Mount target of files that belong to no session. It is no directory of the site, so an apply needs the operator. */
	private const NEUTRAL_TARGET = '/workspace/browser-artifact';

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param ExtensionGate    $gate      Check that the PHP extension is loaded and its version fits.
	 * @param ArtifactSessions $sessions  Finds sessions and their archives.
	 * @param ArtifactService  $artifacts Reader of the artifact bundles.
	 * @param Site             $site      Site the plugin runs on.
	 * @param AuditTrail       $audit     Audit log that records each upload.
	 * @param TrustedCallers   $callers   Authorizes the caller.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly ArtifactSessions $sessions,
		private readonly ArtifactService $artifacts,
		private readonly Site $site,
		private readonly AuditTrail $audit,
		private readonly TrustedCallers $callers
	) {}

	/**
	 * Stores an upload. An equal upload of the same caller and session returns the stored bundle.
	 *
	 * @param array<string, mixed> $input `files`, `deleted?`, `session_id?`; statements of the caller.
	 * @return array<string, mixed> `wp-codebox/browser-artifact-persistence/v1`.
	 * @throws Failure When nothing was stored; the audit log records the failure too.
	 */
	public function persist( array $input ): array {
		$this->gate->check();
		$decision = $this->callers->admitted( Scope::WriteArtifacts, $input['authorization'] ?? null, $input );
		$record   = [ 'authorization' => $decision->to_array() ];
		try {
			$session = $this->session( $input );
			$record += null === $session ? [] : [ 'source' => [ 'session_id' => $session->session_id ] ];
			$stored  = Artifacts::compose( $this->site->id(), $this->request( $input, $session, $decision ) );
		} catch ( Throwable $thrown ) {
			throw $this->audit->failure( self::EVENT, $record, $thrown );
		}
		$verification = array_diff_key( (array) $stored['verification'], array_flip( [ 'manifest', 'bundleDirectory' ] ) );
		$known        = array_intersect_key( $stored, array_flip( [ 'artifact_id', 'run_id', 'manifest_sha256' ] ) );
		$audit        = $this->audit->write(
			self::EVENT,
			$record + $known + [
				'status'    => 'success',
				'result'    => [ 'status' => $stored['status'] ],
				'signature' => $verification['signature'],
			]
		);
		$artifact     = $this->artifacts->artifact( [ 'artifact_id' => $stored['run_id'] ] );
		$reference    = BundleRecord::reference( $artifact );
		return [
			'success'          => true,
			'schema'           => 'wp-codebox/browser-artifact-persistence/v1',
			'status'           => $stored['status'],
			'content_digest'   => (string) $artifact['content_digest'],
			'directory'        => (string) $artifact['directory'],
			'artifact_ref'     => $reference,
			'persisted_bundle' => $reference + [
				'status' => $stored['status'],
				'origin' => 'browser',
			],
			'grant'            => $decision->to_array(),
			'artifact'         => $artifact,
			'origin'           => 'browser',
			'verification'     => $verification,
			'audit'            => ArtifactService::audit_reference( $audit ),
			'authorization'    => $decision->to_array(),
		] + $known + ( null === $session ? [] : [ 'session_id' => $session->session_id ] );
	}

	/**
	 * Returns the session that the input names; null without one.
	 *
	 * @param array<string, mixed> $input Input of the ability.
	 * @throws Failure For a session that is unknown, expired, or of another user or site.
	 */
	private function session( array $input ): ?SessionBaseline {
		$named = is_array( $input['session'] ?? null ) ? $input['session'] : [];
		$ids   = array_filter( [ $input['session_id'] ?? null, $named['session_id'] ?? $named['id'] ?? null ], static fn( mixed $id ): bool => is_string( $id ) && '' !== $id );
		if ( [] === $ids ) {
			return null;
		}
		if ( count( array_unique( $ids ) ) > 1 ) {
			throw Failure::invalid_input( __( '"session_id" and "session" name different sessions; give only one of these fields.', 'codebox' ) );
		}
		$session = $this->sessions->baseline( (string) reset( $ids ) );
		// A session of another user is refused by the store already. This check does not depend on it.
		if ( get_current_user_id() !== $session->user_id || get_current_blog_id() !== $session->blog_id ) {
			throw Failure::because( ErrorCode::Forbidden, __( 'The browser session belongs to another user or site; open one of your own.', 'codebox' ) );
		}
		return $session;
	}

	/**
	 * Returns the request for the extension.
	 *
	 * @param array<string, mixed> $input    Input of the ability.
	 * @param SessionBaseline|null $session  Session of the upload.
	 * @param Authorization        $decision Authenticated caller.
	 * @return array<string, mixed>
	 */
	private function request( array $input, ?SessionBaseline $session, Authorization $decision ): array {
		$deleted = array_values( (array) ( $input['deleted'] ?? [] ) );
		$files   = UploadedFile::list( $input['files'] ?? ( [] === $deleted ? null : [] ) );
		if ( null === $session ) {
			array_walk( $files, static fn( UploadedFile $file ) => $file->assert_document() );
		}
		$requester  = $this->audit->requester() + [ 'site' => $this->site->id() ];
		$claims     = CallerClaims::of( $input, $files );
		$provenance = [
			'origin'           => 'browser',
			'requester'        => $requester,
			'caller'           => array_intersect_key( $decision->to_array(), array_flip( [ 'caller', 'method', 'scope' ] ) ),
			'execution'        => 'browser-playground',
			'execution_scope'  => 'disposable-playground',
			'permission_model' => 'runtime-principal',
			'baseline'         => null === $session ? 'none' : $session->roots,
		] + ( null === $session ? [] : [ 'session_id' => $session->session_id ] + $session->facts );
		return [
			'identity'   => (string) wp_json_encode( [ $requester, $decision->caller, $session?->session_id ] ),
			'roots'      => null === $session ? [ [ 'target' => self::NEUTRAL_TARGET ] ] : $this->roots( $session->roots ),
			'files'      => array_map( static fn( UploadedFile $file ): array => $file->upload(), $files ),
			'deleted'    => $deleted,
			'provenance' => $provenance + ( [] === $claims ? [] : [ 'claims' => $claims ] ),
		];
	}

	/**
	 * Returns the directories of a session for the extension. Plugins of a single file share the plugin directory, in which nothing but
	 * their files may change.
	 *
	 * @param list<array{target: string, archive: string}> $rows Code of the session.
	 * @return list<array<string, mixed>>
	 * @throws Failure When the code is no plugin or theme, or its archive is not stored any more.
	 */
	private function roots( array $rows ): array {
		$roots = [];
		foreach ( $rows as $row ) {
			$part = [];
			if ( 1 !== preg_match( '#^(plugin|theme)s/([^/]+)$#D', $row['target'], $part ) ) {
				/* translators: %s: directory below wp-content. */
				throw Failure::because( ErrorCode::MountSourceInvalid, Sentence::of( __( 'This session changes %s and cannot be kept as a bundle, because a bundle changes only plugins and themes.', 'codebox' ), $row['target'] ) );
			}
			[ , $kind, $slug ] = $part;

			$single = 'plugin' === $kind && str_ends_with( $slug, '.php' );
			$name   = $single ? 'plugins' : $row['target'];
			$origin = $single ? SingleFilePlugins::ORIGIN : [
				'kind' => $kind,
				'slug' => $slug,
			];

			$roots[ $name ] ??= [
				'name'     => $name,
				'target'   => SeedArchives::CONTENT . $name,
				'baseline' => [],
				'metadata' => [ 'origin' => $origin ],
			];

			$roots[ $name ]['baseline'][] = $this->source( $row['archive'] );
			if ( $single ) {
				$roots[ $name ]['files'][] = $slug;
			}
		}
		return array_values( $roots );
	}

	/**
	 * Returns a stored archive for the extension, which compares its hash.
	 *
	 * @param string $sha256 SHA-256 of the archive.
	 * @return array{path: string, sha256: string}
	 * @throws Failure `wp_codebox_browser_artifact_baseline_invalid`.
	 */
	private function source( string $sha256 ): array {
		$path = $this->sessions->archive( $sha256 );
		if ( null === $path ) {
			throw Failure::because( ErrorCode::BrowserArtifactBaselineInvalid, __( 'The code from which this browser session started is not stored any more; open a new session.', 'codebox' ) );
		}
		return [
			'path'   => $path,
			'sha256' => $sha256,
		];
	}
}
