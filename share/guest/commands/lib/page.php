<?php
/**
 * Renders one WordPress page in this process. A redirect, wp_die(), exit and a fatal error are all reported
 * as results.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/page-result.php';
require_once __DIR__ . '/watch.php';

/**
 * One rendered page, and what WordPress did while rendering it.
 */
final class Page {
	/** Maximum number of reported query fingerprints (queries without their values). */
	private const FINGERPRINTS = 50;

	/** HTTP status of the response. */
	private int $status = 200;

	/**
	 * Headers that WordPress set, by name.
	 *
	 * @var array<string,string>
	 */
	private array $headers = array();

	/** Target of the redirect, if WordPress redirected. */
	private ?string $location = null;

	/**
	 * Message, title and status that were passed to wp_die(), if it was called.
	 *
	 * @var ?array<string,mixed>
	 */
	private ?array $died = null;

	/** Template file of the theme that WordPress chose. */
	private ?string $template = null;

	/**
	 * Creates the page; must run before WordPress is loaded.
	 *
	 * @param Page_Request     $request     Request of the page.
	 * @param \Closure(): ?int $asked       Id of the user that the page was requested for.
	 * @param ?int             $expected    Required HTTP status; null if the caller requires none.
	 * @param bool             $diagnostics Whether queries are listed.
	 * @param Watch            $watch       Observer that records the effects.
	 */
	public function __construct( private readonly Page_Request $request, private readonly \Closure $asked, private readonly ?int $expected, private readonly bool $diagnostics, private readonly Watch $watch ) {
		before_wordpress( 'status_header', $this->answered( ... ), 2, PHP_INT_MAX );
		before_wordpress( 'wp_headers', $this->headed( ... ), 1, PHP_INT_MAX );
		before_wordpress( 'nocache_headers', $this->headed( ... ), 1, PHP_INT_MAX );
		before_wordpress( 'wp_redirect', $this->redirected( ... ), 2, PHP_INT_MAX );
		before_wordpress( 'template_include', $this->chosen( ... ), 1, PHP_INT_MAX );
		foreach ( array( 'wp_die_handler', 'wp_die_ajax_handler', 'wp_die_json_handler' ) as $hook ) {
			before_wordpress( $hook, $this->dying( ... ), 1, PHP_INT_MAX );
		}
		Entry::$at_exit = $this->document( ... );
	}

	/**
	 * Records the HTTP status. Callback of the hook status_header.
	 *
	 * @param mixed $header Status line.
	 * @param mixed $code   HTTP status.
	 */
	public function answered( mixed $header, mixed $code ): mixed {
		$this->status = (int) $code;
		return $header;
	}

	/**
	 * Records the response headers. Callback of the hooks wp_headers and nocache_headers.
	 *
	 * @param mixed $headers Response headers.
	 */
	public function headed( mixed $headers ): mixed {
		foreach ( is_array( $headers ) ? $headers : array() as $name => $value ) {
			if ( is_string( $name ) && is_scalar( $value ) && false !== $value && count( $this->headers ) < 100 ) {
				$this->headers[ strtolower( cut( $name, 100 ) ) ] = is_secret_name( $name ) ? MASK : cut( (string) $value, 1000 );
			}
		}
		return $headers;
	}

	/**
	 * Records the redirect. Callback of the hook wp_redirect.
	 *
	 * @param mixed $location Redirect target.
	 * @param mixed $status   HTTP status.
	 */
	public function redirected( mixed $location, mixed $status ): mixed {
		if ( is_string( $location ) && '' !== $location ) {
			$this->location = cut( $location, 2000 );
			$this->status   = (int) $status;
		}
		return $location;
	}

	/**
	 * Records the template file. Callback of the hook template_include.
	 *
	 * @param mixed $template Template file.
	 */
	public function chosen( mixed $template ): mixed {
		$this->template = is_string( $template ) ? guest_path( $template ) : null;
		return $template;
	}

	/**
	 * Returns a handler of wp_die() that records the message first. Callback of the wp_die() handler hooks.
	 *
	 * @param mixed $handler Handler that would print the message.
	 */
	public function dying( mixed $handler ): mixed {
		if ( ! is_callable( $handler ) ) {
			return $handler;
		}
		return function ( $message, $title = '', $args = array() ) use ( $handler ) {
			$text       = is_wp_error( $message ) ? $message->get_error_message() : ( is_scalar( $message ) ? (string) $message : '' );
			$this->died = array(
				'message' => cut( text_without_tags( $text ), 1000 ),
				'title'   => cut( is_string( $title ) ? text_without_tags( $title ) : '', 200 ),
			);
			if ( is_array( $args ) && is_numeric( $args['response'] ?? null ) ) {
				$this->died['response'] = (int) $args['response'];
			}
			return $handler( $message, $title, $args );
		};
	}

	/**
	 * Returns what WordPress did, once the page has ended: {status, headers, location, user, died?, template?,
	 * fatal?, php, queries, costs, hooks}.
	 *
	 * @return array<string,mixed>
	 */
	public function seen(): array {
		$more = array(
			'died'     => $this->died,
			'template' => $this->template,
			'fatal'    => fatal_error(),
		);
		return array(
			'status'   => null === $more['fatal'] ? $this->status : 500,
			'headers'  => (object) $this->headers,
			'location' => $this->location,
			'user'     => self::acting(),
			'php'      => $this->watch->php(),
			'queries'  => $this->watch->queries( $this->diagnostics ? self::FINGERPRINTS : 0 ),
			'costs'    => $this->watch->costs(),
			'hooks'    => $this->watch->hooks(),
		) + array_filter( $more, static fn ( $value ): bool => null !== $value );
	}

	/**
	 * Returns the result document, once the page has ended.
	 *
	 * @return array<string,mixed>
	 */
	public function document(): array {
		$seen     = $this->seen();
		$status   = $seen['status'];
		$document = page_result( $this->request, 'simulated', $status, $this->headers, $this->location, $seen );
		if ( $this->is_of_another( $document['outcome'], $seen['user']['id'] ?? null ) ) {
			return failure(
				'not-logged-in',
				sprintf(
					'the page was requested as %s, but WordPress refused access to %s; look for a plugin that changes who is logged in',
					'' === $this->request->user ? 'the user of the session' : cut( $this->request->user, 100 ),
					$seen['user']['login'] ?? 'a visitor who is not logged in'
				),
				$document
			);
		}
		$fault = page_fault( $status, $this->expected, $seen['fatal'] ?? null );
		return null === $fault ? $document : failure( 'page-error', $fault, $document );
	}

	/**
	 * Returns the user that WordPress had determined when the page ended; WordPress is not asked again.
	 *
	 * @return ?array<string,mixed>
	 */
	private static function acting(): ?array {
		$user = $GLOBALS['current_user'] ?? null;
		return $user instanceof \WP_User && $user->exists() ? Users::row( $user ) : null;
	}

	/**
	 * Checks whether WordPress refused the page because the current user is not the one for whom it was
	 * requested. A refusal of the requested user is a valid result.
	 *
	 * @param string $outcome How the page ended.
	 * @param ?int   $user    Id of the current user; null for a visitor.
	 */
	private function is_of_another( string $outcome, ?int $user ): bool {
		$asked = ( $this->asked )();
		if ( null === $asked || $asked === $user ) {
			return false;
		}
		// auth_redirect() redirects to the login page with this argument.
		return 'died' === $outcome || ( 'redirected' === $outcome && str_contains( (string) $this->location, 'reauth=1' ) );
	}
}

/**
 * Returns path and query of a page, from `path` or `url` and `query-json`.
 *
 * @param Arguments $arguments Arguments of the guest command.
 * @param string    $fallback  Value used when neither is given.
 */
function page_target( Arguments $arguments, string $fallback ): string {
	if ( '' !== $arguments->first( 'path' ) && '' !== $arguments->first( 'url' ) ) {
		throw Refusal::input( 'give either path or url' );
	}
	$target = $arguments->first( 'path', 'url' );
	$target = '' === $target ? $fallback : own_page( $target );
	$target = '/' . ltrim( $target, '/' );
	if ( strlen( $target ) > 4096 || 1 === preg_match( '/[\x00-\x20\x7f]/', $target ) || 1 === preg_match( '~(?:^|/)\.\.(?:/|$)~', rawurldecode( (string) parse_url( 'http://localhost' . $target, PHP_URL_PATH ) ) ) ) {
		throw Refusal::input( sprintf( '%s is not the path of a page', Arguments::shown( $target ) ) );
	}
	$query = http_build_query( $arguments->object( 'query-json' ) );
	return '' === $query ? $target : $target . ( str_contains( $target, '?' ) ? '&' : '?' ) . $query;
}

/**
 * Returns path and query of a page of this site that is given as a path or as a URL.
 *
 * @param string $given Path or URL.
 */
function own_page( string $given ): string {
	if ( 1 !== preg_match( '~^[A-Za-z][A-Za-z0-9+.-]*:|^//~', $given ) ) {
		return (string) preg_replace( '/#.*$/s', '', $given );
	}
	$parts = parse_url( $given );
	$hosts = array( 'localhost', '127.0.0.1', (string) parse_url( Entry::$call['url'], PHP_URL_HOST ) );
	if ( ! is_array( $parts ) || ! in_array( strtolower( $parts['host'] ?? '' ), $hosts, true ) || ! in_array( $parts['scheme'] ?? 'http', array( 'http', 'https' ), true ) ) {
		throw Refusal::input( sprintf( 'url is %s, but must be a page of this sandbox: http://localhost/…', Arguments::shown( $given ) ) );
	}
	return ( $parts['path'] ?? '/' ) . ( isset( $parts['query'] ) ? '?' . $parts['query'] : '' );
}

/**
 * Returns whether a page load records its database queries: a boolean, or a list of what to record.
 *
 * @param Arguments $arguments Arguments of the guest command.
 */
function records_queries( Arguments $arguments ): bool {
	$words = $arguments->texts( 'capture-diagnostics' );
	if ( 1 === count( $words ) && 'wpdb-queries' !== $words[0] ) {
		return $arguments->truth( 'capture-diagnostics', false );
	}
	$unknown = array_diff( $words, array( 'wpdb-queries' ) );
	if ( array() !== $unknown ) {
		throw Refusal::input( sprintf( 'capture-diagnostics has %s, but may only have wpdb-queries, or be true or false', Arguments::shown( reset( $unknown ) ) ) );
	}
	return array() !== $words;
}
