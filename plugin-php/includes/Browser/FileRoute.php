<?php
/**
 * REST route that serves the files of browser sessions.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use Closure;
use Throwable;
use WP_Error;
use WP_REST_Request;
use WP_REST_Response;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * `GET wp-codebox/v1/browser-file/<token>` streams one file to the user whom its token names. The route changes nothing, so it
 * needs no REST nonce: it reads the user from the login cookie or the application password itself.
 */
final class FileRoute {

	public const NAMESPACE = 'wp-codebox/v1';
	public const ROUTE     = '/browser-file';

	/** Request that the callback answered with a file. */
	private ?WP_REST_Request $served = null;
	/** Path of that file. */
	private string $path = '';

	/**
	 * Creates the route with its dependencies.
	 *
	 * @param Closure(): PrivateFiles $files   Returns the stored files.
	 * @param Closure(string): mixed  $session Throws unless a session with this id exists, is not expired and belongs to the current user.
	 * @param string                  $site_id Id of this site.
	 */
	public function __construct(
		private readonly Closure $files,
		private readonly Closure $session,
		private readonly string $site_id
	) {}

	/** Registers the hooks. */
	public function register(): void {
		add_action( 'rest_api_init', [ $this, 'add' ] );
		add_filter( 'rest_pre_serve_request', [ $this, 'stream' ], 10, 3 );
	}

	/** Registers the route. WordPress answers HEAD with the handler of GET. */
	public function add(): void {
		register_rest_route(
			self::NAMESPACE,
			self::ROUTE . '/(?P<token>[A-Za-z0-9_.-]+)',
			[
				'methods'             => 'GET',
				'callback'            => [ $this, 'answer' ],
				'permission_callback' => [ $this, 'permit' ],
				'show_in_index'       => false,
			]
		);
	}

	/**
	 * Checks token, user and session.
	 *
	 * @param WP_REST_Request $request Request.
	 */
	public function permit( WP_REST_Request $request ): bool|WP_Error {
		try {
			$this->token( $request );
			return true;
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
	}

	/**
	 * Answers with the headers of the file; `stream()` sends its bytes.
	 *
	 * @param WP_REST_Request $request Request that `permit()` accepted.
	 */
	public function answer( WP_REST_Request $request ): WP_REST_Response|WP_Error {
		try {
			$token = $this->token( $request );
			$path  = ( $this->files )()->path( $token->sha256 ) ?? throw PrivateFiles::missing();
		} catch ( Throwable $thrown ) {
			return Failure::from( $thrown )->to_wp_error();
		}
		$tag     = '"' . $token->sha256 . '"';
		$headers = [
			'ETag'                   => $tag,
			'Cache-Control'          => 'private, immutable, max-age=' . max( 0, $token->expires_at - time() ),
			'X-Content-Type-Options' => 'nosniff',
			'Content-Disposition'    => 'attachment; filename="' . $token->sha256 . '.zip"',
		];
		if ( in_array( $tag, array_map( 'trim', explode( ',', (string) $request->get_header( 'if_none_match' ) ) ), true ) ) {
			return $this->remember( $request, '', new WP_REST_Response( null, 304, $headers ) );
		}
		$headers += [
			'Content-Type'   => 'application/zip',
			'Content-Length' => (string) filesize( $path ),
		];
		return $this->remember( $request, $path, new WP_REST_Response( null, 200, $headers ) );
	}

	/**
	 * Sends the bytes of the file instead of JSON.
	 *
	 * @param mixed $served  Whether another filter has sent the body.
	 * @param mixed $result  Response.
	 * @param mixed $request Request.
	 */
	public function stream( mixed $served, mixed $result = null, mixed $request = null ): mixed {
		if ( true === $served || ! $result instanceof WP_REST_Response || null === $this->served || $request !== $this->served ) {
			return $served;
		}
		// WP_REST_Server sends Expires and Pragma to logged-in users, which contradict the Cache-Control of the file.
		header_remove( 'Expires' );
		header_remove( 'Pragma' );
		while ( ob_get_level() > 0 ) {
			ob_end_clean();
		}
		// Headers of a HEAD request are those of GET.
		if ( '' !== $this->path && 'HEAD' !== $request->get_method() ) {
			// phpcs:ignore WordPress.WP.AlternativeFunctions -- streams without loading the file into memory.
			readfile( $this->path );
		}
		return true;
	}

	/**
	 * Remembers which request gets which file.
	 *
	 * @param WP_REST_Request  $request  Request.
	 * @param string           $path     Path of the file, or '' for an answer without body.
	 * @param WP_REST_Response $response Response.
	 */
	private function remember( WP_REST_Request $request, string $path, WP_REST_Response $response ): WP_REST_Response {
		$this->served = $request;
		$this->path   = $path;
		return $response;
	}

	/**
	 * Returns the token of a request after checking signature, expiry, site, user and session.
	 *
	 * @param WP_REST_Request $request Request.
	 * @throws Failure With one code for each reason.
	 */
	private function token( WP_REST_Request $request ): FileToken {
		$token = FileToken::read( (string) $request['token'], $this->site_id );
		$user  = get_current_user_id();
		// Without a REST nonce WordPress ignores the login cookie.
		$user = 0 === $user ? (int) wp_validate_logged_in_cookie( false ) : $user;
		if ( 0 === $user ) {
			throw Failure::because( ErrorCode::BrowserLinkForeign, __( 'Log in to download a file of a browser sandbox.', 'codebox' ) );
		}
		if ( $user !== $token->user_id ) {
			throw FileToken::foreign();
		}
		$current = get_current_user_id();
		wp_set_current_user( $user );
		try {
			( $this->session )( $token->session_id );
		} finally {
			wp_set_current_user( $current );
		}
		return $token;
	}
}
