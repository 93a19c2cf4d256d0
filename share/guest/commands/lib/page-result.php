<?php
/**
 * Result document of a loaded page.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/result.php';

/**
 * A page that a command requests.
 */
final class Page_Request {
	/**
	 * Creates the request.
	 *
	 * @param string                  $surface Part of the site: frontend, admin, login or rest.
	 * @param string                  $method  HTTP method.
	 * @param string                  $target  Path and query.
	 * @param ?array<string,mixed>    $fields  Fields of the body; null when the body is no form.
	 * @param string                  $user    User that the page is requested for; '' for none.
	 * @param string                  $session Name of the session; '' for none.
	 */
	public function __construct( public readonly string $surface, public readonly string $method, public readonly string $target, public readonly ?array $fields, public readonly string $user = '', public readonly string $session = '' ) {}

	/**
	 * Returns the member `target` of the result.
	 *
	 * @return array<string,mixed>
	 */
	public function document(): array {
		parse_str( (string) parse_url( 'http://localhost' . $this->target, PHP_URL_QUERY ), $query );
		$session = array_filter( array( 'user' => cut( $this->user, 100 ), 'session' => cut( $this->session, 100 ) ), static fn ( string $name ): bool => '' !== $name );
		return array(
			'kind'        => in_array( $this->surface, array( 'admin', 'login' ), true ) ? 'admin' : 'frontend',
			'path'        => cut( $this->target, 2000 ),
			'url'         => cut( rtrim( Entry::$call['url'], '/' ) . $this->target, 2000 ),
			'method'      => $this->method,
			'query'       => (object) plain( $query ),
			'userSession' => array() === $session ? null : $session,
		) + ( null === $this->fields ? array() : array( 'body' => (object) plain( $this->fields ) ) );
	}
}

/**
 * Returns why a response fails its command; null if it does not. A status from 500 and a fatal error fail the command,
 * except when the caller requires such a status.
 *
 * @param int                  $status   HTTP status of the response.
 * @param ?int                 $expected HTTP status that the caller requires; null if it requires none.
 * @param ?array<string,mixed> $fatal    Row of the error that ended PHP; null if none did.
 */
function page_fault( int $status, ?int $expected, ?array $fatal ): ?string {
	$ended = null === $fatal ? '' : "PHP ended with a fatal error: {$fatal['message']} in {$fatal['file']}:{$fatal['line']}";
	if ( null !== $expected && $expected !== $status ) {
		return "the page answered with $status, but $expected was expected" . ( '' === $ended ? '' : "; $ended" );
	}
	if ( $status < 500 && null === $fatal || null !== $expected && $expected >= 500 ) {
		return null;
	}
	$hint = $status < 500 ? '' : ", or set expect-status=$status if it is expected";
	return ( '' === $ended ? "the page answered with $status" : $ended ) . "; correct it$hint";
}

/**
 * Returns the PHP messages of a request in their order, with the error that ended PHP at the end.
 *
 * @param array<string,mixed> $seen What Page::seen() returned.
 * @return list<array<string,mixed>>
 */
function php_errors( array $seen ): array {
	$rows  = array_map( static fn ( $row ): array => (array) $row, (array) ( ( (array) ( $seen['php'] ?? array() ) )['messages'] ?? array() ) );
	$fatal = isset( $seen['fatal'] ) ? (array) $seen['fatal'] : null;
	if ( null === $fatal ) {
		return $rows;
	}
	// PHP reports an error of trigger_error() to the error handler before it ends.
	$last = end( $rows );
	if ( is_array( $last ) && array_diff_key( $last, array( 'level' => 0 ) ) === array_diff_key( $fatal, array( 'level' => 0 ) ) ) {
		array_pop( $rows );
	}
	return array( ...$rows, $fatal );
}

/**
 * Builds the result document of a page. Redirects, wp_die() and fatal errors are results too.
 *
 * @param Page_Request         $request  Request of the page.
 * @param string               $mode     How the page was loaded: simulated or server-http.
 * @param int                  $status   HTTP status of the response.
 * @param array<string,string> $headers  Headers of the response.
 * @param ?string              $location Target of the redirect; null when the page redirected nowhere.
 * @param array<string,mixed>  $seen     What Page::seen() returned.
 * @return array<string,mixed>
 */
function page_result( Page_Request $request, string $mode, int $status, array $headers, ?string $location, array $seen ): array {
	$php     = (array) ( $seen['php'] ?? array() );
	$queries = (array) ( $seen['queries'] ?? array() );
	$notices = array();
	$errors  = array();
	foreach ( (array) ( $php['messages'] ?? array() ) as $row ) {
		if ( 'error' === ( (array) $row )['level'] ) {
			$errors[] = array( 'code' => 'php-error' ) + (array) $row;
		} else {
			$notices[] = $row;
		}
	}
	if ( isset( $seen['fatal'] ) ) {
		$errors[] = array( 'code' => 'php-fatal' ) + (array) $seen['fatal'];
	}
	if ( isset( $seen['died'] ) && $status >= 400 ) {
		$errors[] = array( 'code' => 'wp-die' ) + (array) $seen['died'];
	}
	return array(
		'schema'       => 'wp-codebox/wordpress-page-load-result/v1',
		'command'      => Entry::$call['command'],
		'status'       => isset( $seen['fatal'] ) || $status >= 400 ? 'error' : ( null !== $location ? 'redirect' : 'ok' ),
		'mode'         => $mode,
		'source'       => 'simulated' === $mode ? 'in-process' : $mode,
		'surface'      => $request->surface,
		'target'       => $request->document(),
		'identity'     => (object) array( 'user' => $seen['user'] ?? null ),
		'http'         => array(
			'status'  => $status,
			'headers' => (object) $headers,
		),
		'outcome'      => match ( true ) {
			isset( $seen['fatal'] ) => 'fatal',
			null !== $location => 'redirected',
			isset( $seen['died'] ) => 'died',
			default => 'rendered',
		},
		'title'        => null,
		// The parent process adds the printed page here, because it reads the output of this process.
		'body'         => null,
		'notices'      => $notices,
		'errors'       => $errors,
		'phpErrors'    => php_errors( $seen ),
		'performance'  => (object) ( (array) ( $seen['costs'] ?? array() ) + ( isset( $queries['count'] ) ? array( 'queryCount' => $queries['count'], 'queryMs' => $queries['totalMs'] ) : array() ) ),
		'diagnostics'  => (object) array_intersect_key( $seen, array_flip( array( 'php', 'queries', 'hooks' ) ) ),
		'artifactRefs' => array(),
		'metadata'     => (object) array_filter( array_intersect_key( $seen, array_flip( array( 'template', 'died', 'fatal' ) ) ) ),
	) + ( null === $location ? array() : array(
		'redirect' => array(
			'location' => $location,
			'status'   => $status,
		),
	) );
}
