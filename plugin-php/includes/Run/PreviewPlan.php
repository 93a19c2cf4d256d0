<?php
/**
 * Preview that a task asks for.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Authority;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * Converts `preview_hold_seconds`, `preview_port`, `preview_bind` and `preview_public_url` to the extension's field
 * `hold`: the sandbox stays for this time after its work, with its site on an address of this host.
 *
 * A user may listen on loopback addresses and on ports from 1024. The constant WP_CODEBOX_PREVIEW allows more:
 *
 *     define( 'WP_CODEBOX_PREVIEW', [ 'bind' => [ '0.0.0.0' ], 'ports' => [ 80 ] ] );
 *
 * The operator, who can start any program on this host, may use every address and port.
 */
final class PreviewPlan {

	/** Fields that describe a preview and have no effect without `preview_hold_seconds`. */
	private const PLACE = [ 'preview_port', 'preview_bind', 'preview_public_url' ];

	/** Highest port that a user may choose only if WP_CODEBOX_PREVIEW lists it. */
	private const LAST_RESERVED_PORT = 1023;

	/**
	 * Returns the field `hold` of the request; empty when the task asks for no preview.
	 *
	 * @param array<string, mixed> $input     Task input.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array{hold?: array<string, mixed>}
	 * @throws Failure `wp_codebox_input_invalid` with the field in its data.
	 */
	public function field( array $input, Authority $authority ): array {
		$seconds = (int) ( $input['preview_hold_seconds'] ?? 0 );
		if ( 0 === $seconds ) {
			foreach ( self::PLACE as $field ) {
				if ( ! empty( $input[ $field ] ) ) {
					/* translators: %s: name of a field. */
					throw $this->refusal( $field, Sentence::of( __( '"%s" has no effect without "preview_hold_seconds".', 'codebox' ), $field ), __( 'Set "preview_hold_seconds" to the seconds for which the sandbox stays up for the preview, from 1 to 3600, or leave the other field out.', 'codebox' ) );
				}
			}
			return [];
		}
		$bind    = $this->address( trim( (string) ( $input['preview_bind'] ?? '' ) ), $authority );
		$port    = $this->port( (int) ( $input['preview_port'] ?? 0 ), $authority );
		$public  = $this->origin( trim( (string) ( $input['preview_public_url'] ?? '' ) ) );
		$preview = array_filter(
			[
				'bind'       => $bind,
				'port'       => $port,
				'public_url' => $public,
			]
		);
		// Every user and program of this host reaches a loopback address, so a preview there needs a token too. PHP creates
		// the token and not the supervisor: the answer needs it for the link, and the run's journal, from which PHP reads about
		// the preview, never contains a token.
		$preview['token'] = bin2hex( random_bytes( 32 ) );
		return [
			'hold' => [
				'ttl_ms'     => 1000 * $seconds,
				'max_ttl_ms' => 1000 * $seconds,
				'preview'    => $preview,
			],
		];
	}

	/**
	 * Returns the address to listen on; empty for the default.
	 *
	 * @param string    $bind      Address as the task gives it.
	 * @param Authority $authority User or operator the call runs as.
	 */
	private function address( string $bind, Authority $authority ): string {
		// The default of the extension is a loopback address.
		$bind = 'localhost' === strtolower( $bind ) ? '' : trim( $bind, '[]' );
		if ( '' !== $bind && false === filter_var( $bind, FILTER_VALIDATE_IP ) ) {
			/* translators: %s: value as given. */
			throw $this->refusal( 'preview_bind', Sentence::of( __( 'The value "%s" of "preview_bind" is not an IP address.', 'codebox' ), $bind ), __( 'Give an IP address of this host, or leave the field out for the loopback address.', 'codebox' ) );
		}
		if ( Authority::User === $authority && ! self::is_loopback( $bind ) && ! in_array( $bind, $this->allowed( 'bind' ), true ) ) {
			/* translators: %s: value as given. */
			throw $this->refusal( 'preview_bind', Sentence::of( __( 'The value "%s" of "preview_bind" is not allowed: other machines could reach the sandbox.', 'codebox' ), $bind ), __( 'Leave "preview_bind" out, or ask the operator to add the address to the list "bind" of the constant WP_CODEBOX_PREVIEW.', 'codebox' ) );
		}
		return $bind;
	}

	/**
	 * Returns the port to listen on; 0 for any free one.
	 *
	 * @param int       $port      Port as the task gives it.
	 * @param Authority $authority User or operator the call runs as.
	 */
	private function port( int $port, Authority $authority ): int {
		if ( Authority::User === $authority && 0 !== $port && $port <= self::LAST_RESERVED_PORT && ! in_array( $port, $this->allowed( 'ports' ), true ) ) {
			/* translators: %d: number of a port. */
			throw $this->refusal( 'preview_port', Sentence::of( __( 'The value %d of "preview_port" is not allowed: ports below 1024 belong to services of the host.', 'codebox' ), $port ), __( 'Give a port from 1024, leave "preview_port" out for any free port, or ask the operator to add the port to the list "ports" of the constant WP_CODEBOX_PREVIEW.', 'codebox' ) );
		}
		return $port;
	}

	/**
	 * Returns the origin that visitors use; empty without one. The origin of this site is refused: scripts of the sandbox
	 * would run as scripts of this site.
	 *
	 * @param string $url URL as the task gives it.
	 */
	private function origin( string $url ): string {
		if ( '' === $url ) {
			return '';
		}
		foreach ( [ home_url(), site_url(), network_home_url() ] as $own ) {
			if ( self::same_origin( $url, $own ) ) {
				throw $this->refusal( 'preview_public_url', __( '"preview_public_url" must not have the origin of this site.', 'codebox' ), __( 'Give an origin that nothing else uses, such as https://preview.example.org.', 'codebox' ) );
			}
		}
		return untrailingslashit( $url );
	}

	/**
	 * Checks whether two URLs have the same scheme, host and port.
	 *
	 * @param string $one   URL.
	 * @param string $other URL.
	 */
	private static function same_origin( string $one, string $other ): bool {
		$origins = [];
		foreach ( [ $one, $other ] as $url ) {
			$parts     = (array) wp_parse_url( $url );
			$scheme    = strtolower( (string) ( $parts['scheme'] ?? '' ) );
			$origins[] = [ $scheme, rtrim( strtolower( (string) ( $parts['host'] ?? '' ) ), '.' ), (int) ( $parts['port'] ?? ( 'https' === $scheme ? 443 : 80 ) ) ];
		}
		return $origins[0] === $origins[1];
	}

	/**
	 * Checks whether only this machine can reach an address. An empty one is the default, which is loopback.
	 *
	 * @param string $host IP address or host name.
	 */
	private static function is_loopback( string $host ): bool {
		return in_array( strtolower( $host ), [ '', 'localhost', '::1' ], true ) || ( str_starts_with( $host, '127.' ) && false !== filter_var( $host, FILTER_VALIDATE_IP, FILTER_FLAG_IPV4 ) );
	}

	/**
	 * Returns one list of the constant WP_CODEBOX_PREVIEW.
	 *
	 * @param string $name `bind` or `ports`.
	 * @return array<mixed>
	 */
	private function allowed( string $name ): array {
		$setting = defined( 'WP_CODEBOX_PREVIEW' ) ? constant( 'WP_CODEBOX_PREVIEW' ) : [];
		return is_array( $setting ) && is_array( $setting[ $name ] ?? null ) ? $setting[ $name ] : [];
	}

	/**
	 * Returns the failure for a field.
	 *
	 * @param string $field   Name of the field.
	 * @param string $message What is wrong; one sentence.
	 * @param string $instead What to do; one sentence.
	 */
	private function refusal( string $field, string $message, string $instead ): Failure {
		return Failure::invalid_input( $message, [ $instead ], [ 'field' => $field ] );
	}
}
