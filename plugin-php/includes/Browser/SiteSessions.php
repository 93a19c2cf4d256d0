<?php
/**
 * Opens, starts and ends sessions of contained sites (WordPress in a browser session) that exist.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\TaskInput\RefusedFields;

defined( 'ABSPATH' ) || exit;

/** Answers the abilities about a contained site of the caller. The server cannot know what a browser runs; it knows what can be recovered. */
final class SiteSessions {

	/**
	 * Creates the service with its dependencies.
	 *
	 * @param SiteStatus      $sites    Finds sites.
	 * @param SessionStore    $sessions Records of sessions.
	 * @param BrowserSessions $creator  Makes sessions.
	 * @param SessionAudit    $audit    Records ends of sessions.
	 */
	public function __construct(
		private readonly SiteStatus $sites,
		private readonly SessionStore $sessions,
		private readonly BrowserSessions $creator,
		private readonly SessionAudit $audit
	) {}

	/**
	 * Answers preview-reuse-decision.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/preview-reuse-decision/v1`.
	 */
	public function decide( array $input ): array {
		$reference = SiteReference::from( $input )->required();
		$found     = $this->sites->find( $reference );
		$status    = $this->sites->document( $reference, $found );
		$site      = (array) ( $input['contained_site'] ?? [] );
		$running   = true === ( $site['live'] ?? null ) || true === ( $site['current'] ?? null );
		$never     = 'never' === ( $input['policy']['reuse'] ?? 'prefer' );
		// `live` and `current` are claims of the page. They only change the advice that it gets; they give access to nothing.
		[ $action, $decision ] = match ( true ) {
			$never                                      => [ 'create-new', 'prepare-new' ],
			null !== $found['runtime'] && $running && ( $site['session_id'] ?? '' ) === $found['runtime']['session_id'] => [ 'reuse-current', 'reuse-current' ],
			null !== $found['runtime']                  => [ 'hydrate-ref', 'hydrate-prepared-runtime' ],
			in_array( $found['reason'], [ 'input_hash_mismatch', 'incompatible' ], true ) => [ 'reload-required', 'prepare-new' ],
			default                                     => [ 'create-new', 'prepare-new' ],
		};
		return [
			'success'         => true,
			'schema'          => 'wp-codebox/preview-reuse-decision/v1',
			'action'          => $action,
			'decision'        => $decision,
			'identity_key'    => $reference->site_id . ':' . ( $found['runtime']['input_hash'] ?? $reference->digest ),
			'reload_required' => 'reuse-current' !== $action,
			'reason'          => $never ? 'policy' : $status['resolution']['reason'],
			'status_result'   => $status,
		] + array_intersect_key( $status, array_flip( [ 'site_id', 'open_mode', 'reuse_level', 'status', 'resolution', 'recovery', 'recovery_handle' ] ) );
	}

	/**
	 * Answers open-browser-contained-site.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-open/v1`.
	 */
	public function open( array $input ): array {
		if ( ! empty( $input['runtime_profile'] ) ) {
			throw RefusedFields::refusal( 'runtime_profile', __( 'a site in a browser keeps the runtime with which it was created', 'codebox' ), __( 'Create a session with this profile.', 'codebox' ) );
		}
		$reference = SiteReference::from( $input )->required();
		$found     = $this->sites->find( $reference );
		$status    = [ 'schema' => 'wp-codebox/browser-contained-site-open/v1' ] + array_diff_key( $this->sites->document( $reference, $found ), [ 'preview_state' => 1, 'prepare_new_required' => 1 ] );
		if ( null === $found['runtime'] ) {
			return $status;
		}
		[ $record, $runtime ] = $this->continued( $reference, $found['runtime'] );
		$lease = SiteDocuments::lease( $record, 'active', $this->lease( $input, $record ) );
		$boot  = PreviewBoot::config( $record, $runtime, $lease );
		$site  = SiteDocuments::site( $record, 'recoverable_prepared_runtime', [ 'resolution' => $status['resolution'], 'blueprint_ref' => $boot['blueprint_ref'], 'preview_lease' => $lease ] );
		return [
			'contained_site'  => $site,
			'blueprint_ref'   => $boot['blueprint_ref'],
			'preview_boot'    => $boot,
			'preview_lease'   => $lease,
			'preview_session' => $site['session'],
			'session'         => $site['session'],
		] + $status;
	}

	/**
	 * Answers open-or-create-browser-contained-site.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-open-or-create/v1`.
	 */
	public function open_or_create( array $input ): array {
		$mode = (string) ( $input['mode'] ?? '' );
		if ( '' === $mode ) {
			throw Failure::because( ErrorCode::BrowserContainedSiteModeRequired, __( 'Say in "mode" what to do: open-only, open-or-create or prepare-new.', 'codebox' ), [], [ 'field' => 'mode' ] );
		}
		$reference = SiteReference::from( $input );
		$named     = '' !== $reference->site_id;
		$site      = array_intersect_key( $input, array_flip( [ 'contained_site', 'site_id', 'cache_key', 'source_digest', 'input_hash', 'preview_lease' ] ) );
		$answer    = [
			'schema'   => 'wp-codebox/browser-contained-site-open-or-create/v1',
			'mode'     => $mode,
			'decision' => $named ? $this->decide( [ 'policy' => [ 'reuse' => 'prepare-new' === $mode ? 'never' : 'prefer' ] ] + array_diff_key( $site, [ 'preview_lease' => 1 ] ) ) : [ 'action' => 'create-new', 'reason' => 'no_site_named' ],
		] + SiteDocuments::FACTS;
		if ( $named && 'prepare-new' !== $mode ) {
			$open = $this->open( $site );
			if ( $open['success'] ) {
				return [ 'success' => true, 'action' => 'opened', 'identity_key' => $answer['decision']['identity_key'], 'reload_required' => $answer['decision']['reload_required'], 'open' => $open ] + $answer + array_intersect_key( $open, array_flip( [ 'contained_site', 'preview_boot', 'preview_lease', 'preview_session', 'session' ] ) );
			}
		}
		if ( 'open-only' === $mode ) {
			$failure = $this->unavailable( $open['resolution']['reason'] ?? 'no_site_named' );
			return [ 'success' => false, 'action' => 'unavailable', 'reload_required' => true, 'error' => $failure->to_array() ] + $answer + ( isset( $open ) ? [ 'open' => $open ] : [] );
		}
		$made    = $this->creator->create_site( array_diff_key( $input, $site, [ 'mode' => 1 ] ) );
		$created = $made['contained_site'];
		return [ 'success' => 'created' === $made['action'], 'action' => $made['action'], 'identity_key' => $created['site_id'] . ':' . $created['source_digest']['value'], 'reload_required' => true, 'created' => $made ] + $answer + [ 'preview_session' => $created['session'] ] + array_intersect_key( $made, array_flip( [ 'contained_site', 'preview_boot', 'preview_lease', 'session' ] ) ) + ( isset( $made['session']['error'] ) ? [ 'error' => $made['session']['error'] ] : [] );
	}

	/**
	 * Answers boot-browser-contained-site-session.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-boot-result/v1`.
	 */
	public function boot( array $input ): array {
		$open = $this->required( $input );
		return [
			'success'             => true,
			'schema'              => 'wp-codebox/browser-contained-site-boot-result/v1',
			'action'              => 'boot',
			'boot'                => $open['preview_boot'],
			'preview_boot'        => $open['preview_boot'],
			'preview_lease'       => $open['preview_lease'],
			'contained_site'      => $open['contained_site'],
			'startup_diagnostics' => BrowserSessions::diagnostics( 'ready' ),
		] + SiteDocuments::FACTS;
	}

	/**
	 * Answers preview-boot-ref.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/preview-boot-ref/v1`.
	 */
	public function boot_ref( array $input ): array {
		$open = $this->required( $input );
		return [
			'success'             => true,
			'schema'              => 'wp-codebox/preview-boot-ref/v1',
			'boot'                => $open['preview_boot'],
			'preview_boot'        => $open['preview_boot'],
			'blueprint_ref'       => $open['blueprint_ref'],
			'preview_lease'       => $open['preview_lease'],
			'startup_diagnostics' => BrowserSessions::diagnostics( 'ready' ),
			'compatibility'       => [
				'schema'     => 'wp-codebox/preview-boot-ref-compatibility/v1',
				'compatible' => true,
				'wordpress'  => get_bloginfo( 'version' ),
			],
		] + SiteDocuments::FACTS;
	}

	/**
	 * Answers destroy-browser-contained-site-session: the session ends, its references and links do not work any more.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> `wp-codebox/browser-contained-site-destroy/v1`.
	 */
	public function destroy( array $input ): array {
		$reference = SiteReference::from( $input )->required();
		$runtime   = $this->sites->find( $reference )['runtime'];
		$id        = '' !== $reference->session_id ? $reference->session_id : (string) ( $runtime['session_id'] ?? '' );
		$record    = null;
		try {
			$record = '' === $id ? null : $this->sessions->get( $id );
		} catch ( Failure $failure ) {
			if ( ErrorCode::BrowserSessionForeign->value === $failure->error_code ) {
				throw $failure;
			}
		}
		if ( null !== $record && $record->site_id !== $reference->site_id ) {
			throw $this->other_session();
		}
		$answer = [
			'success'             => true,
			'schema'              => 'wp-codebox/browser-contained-site-destroy/v1',
			'action'              => null === $record ? 'noop' : 'released',
			'startup_diagnostics' => BrowserSessions::diagnostics( 'released' ),
		] + SiteDocuments::FACTS;
		if ( null === $record ) {
			return $answer;
		}
		$this->sessions->forget( $id );
		$this->audit->ended( $record );
		return $answer + [
			'contained_site' => SiteDocuments::site( $record, 'miss' ),
			'preview_lease'  => SiteDocuments::lease( $record, 'released', $this->lease( $input, $record ) ),
		];
	}

	/**
	 * Opens a site that must be recoverable.
	 *
	 * @param array<string, mixed> $input Ability input.
	 * @return array<string, mixed> Answer of `open()`.
	 * @throws Failure With a code per reason.
	 */
	public function required( array $input ): array {
		$open = $this->open( $input );
		if ( ! $open['success'] ) {
			throw match ( $open['resolution']['reason'] ) {
				'foreign'                             => RefFailure::foreign(),
				'input_hash_mismatch', 'incompatible' => Failure::because( ErrorCode::BrowserContainedSiteStaleDigest, __( 'The site in the browser was prepared again, or WordPress or the browser runtime was updated, since you got this "source_digest"; open the site again.', 'codebox' ), [], [ 'reason' => $open['resolution']['reason'] ] ),
				default                               => $this->unavailable( $open['resolution']['reason'] ),
			};
		}
		return $open;
	}

	/**
	 * Checks that the caller may continue the session of a site; returns the record of the session and the runtime.
	 *
	 * @param SiteReference        $reference Site.
	 * @param array<string, mixed> $runtime   Prepared runtime.
	 * @return array{SessionRecord, array<string, mixed>}
	 */
	private function continued( SiteReference $reference, array $runtime ): array {
		$record = $this->sessions->get( $runtime['session_id'] );
		if ( '' !== $reference->session_id && $reference->session_id !== $record->session_id ) {
			throw $this->other_session();
		}
		if ( '' !== $reference->scope && $reference->scope !== $runtime['scope'] ) {
			throw Failure::because( ErrorCode::BrowserContainedSiteScopeMismatch, __( 'The "scope" belongs to another session of the site in the browser; leave it out, or copy it from the newest answer.', 'codebox' ), [], [ 'field' => 'scope' ] );
		}
		return [ $record, $runtime ];
	}

	/**
	 * Returns the lease that the caller gave, when it belongs to the session.
	 *
	 * @param array<string, mixed> $input  Ability input.
	 * @param SessionRecord        $record Session.
	 * @return array<string, mixed>
	 */
	private function lease( array $input, SessionRecord $record ): array {
		$lease = (array) ( $input['preview_lease'] ?? [] );
		foreach ( [ 'session_id' => $record->session_id, 'preview_id' => $record->preview_id ] as $name => $expected ) {
			if ( isset( $lease[ $name ] ) && $lease[ $name ] !== $expected ) {
				throw $this->other_session();
			}
		}
		return $lease;
	}

	/** Builds the failure of a handle that names another session. */
	private function other_session(): Failure {
		return Failure::because( ErrorCode::BrowserContainedSiteSessionMismatch, __( 'The "session_id" or "preview_lease" of the input belongs to another session than the site in the browser; copy them from the newest answer.', 'codebox' ), [], [ 'field' => 'session_id' ] );
	}

	/**
	 * Builds the failure of a site that cannot be recovered.
	 *
	 * @param string $reason Reason.
	 */
	private function unavailable( string $reason ): Failure {
		return Failure::because( ErrorCode::BrowserContainedSiteUnavailable, __( 'The site in the browser cannot be opened again; create a new session from the same inputs.', 'codebox' ), [], [ 'reason' => $reason ] );
	}
}
