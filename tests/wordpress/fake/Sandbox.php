<?php
/**
 * Held sandboxes of the stand-in extension. It knows a few commands by heart and runs nothing.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Native;

final class Sandbox {

	/** Files of the guest that a program can read. */
	private const FILES = [ '/tmp/report.json' => "{\"passed\":7}\n" ];

	public static function ask( string $site, string $reference, array $request, array $options = [], ?callable $onOutput = null ): array {
		$directory = Runs::directory( $site ) . '/' . $reference;
		$asked     = is_file( $directory . '/request.json' ) ? json_decode( (string) file_get_contents( $directory . '/request.json' ), true ) : [];
		if ( ! isset( $asked['hold'] ) || ! Runs::is_alive( $directory ) ) {
			throw Exception::make( 'wp_codebox_sandbox_not_held', 'The sandbox has ended.' );
		}
		$log = getenv( 'WP_CODEBOX_FAKE_REQUEST_LOG' );
		if ( $log ) {
			file_put_contents( $log . '.asked', json_encode( $request ) . "\n", FILE_APPEND );
		}
		if ( 'close' === $request['type'] ) {
			touch( $directory . '/close' );
			return [ 'schema' => 'wp-codebox/sandbox/v1', 'id' => $reference ];
		}
		$command = 'exec' === $request['type'] ? 'command-agent-run' : $request['call']['command'];
		if ( ! in_array( $command, $asked['policy']['commands'], true ) ) {
			throw Exception::make( 'runtime-command-disallowed', "the policy does not allow the command \"$command\"" );
		}
		return 'exec' === $request['type'] ? self::program( $request['argv'] ) : self::command( $command, $request['call']['args'] );
	}

	private static function program( array $argv ): array {
		$text = self::FILES[ end( $argv ) ] ?? null;
		$said = match ( null === $text ? '' : $argv[0] ) {
			'sha256sum' => hash( 'sha256', $text ) . ' *' . end( $argv ) . "\n",
			'stat' => strlen( $text ) . "\n",
			'cat' => $text,
			default => '',
		};
		return [ 'execution_id' => 'exec-1', 'end' => 'exited', 'code' => (int) ( null === $text ), 'stdout' => $said, 'stderr' => '', 'duration_ms' => 1 ];
	}

	private static function command( string $command, array $args ): array {
		$result = [ 'schema' => 'wp-codebox/runtime-command-result/v1', 'status' => 'ok' ];
		$known  = [
			'wordpress.wp-cli command=option get home' => [ 'stdout' => "http://localhost\n" ],
			'wordpress.rest-request path=/wp/v2/types' => [ 'stdout' => '{"status":200}', 'json' => [ 'schema' => 'wp-codebox/wordpress-rest-response/v1', 'status' => 200, 'data' => [ 'post' => [] ] ] ],
			'wordpress.rest-request path=/broken'      => [ 'stdout' => '{"status":500}', 'json' => [ 'schema' => 'wp-codebox/wordpress-rest-response/v1', 'status' => 500, 'data' => [] ] ],
		][ $command . ' ' . implode( ' ', $args ) ] ?? null;
		if ( [] === $args ) {
			throw Exception::make( 'wp_codebox_input_invalid', "the arguments of the command $command are not valid" );
		}
		if ( null === $known ) {
			$known = [ 'status' => 'error', 'stderr' => "Error: nonsense\n", 'error' => [ 'code' => 'wp_codebox_run_failed', 'message' => 'wp exited with 1', 'hints' => [ 'read the output of wp for the cause' ] ] ];
		}
		return $known + $result + [ 'diagnostics' => [ 'command' => $command, 'timing' => [ 'durationMs' => 12 ] ] ];
	}
}
