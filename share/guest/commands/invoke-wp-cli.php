<?php
/**
 * Command `wordpress.invoke-wp-cli`: runs WP-CLI as a recorded action.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/action.php';
require __DIR__ . '/lib/processes.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function ( Arguments $arguments ): array {
		$words = wp_cli_words( $arguments->required( 'command' ) );
		if ( array() === $words ) {
			throw Refusal::input( 'command is empty: name a command of WP-CLI, like plugin list' );
		}
		$terms = action_terms( $arguments );
		$file  = (string) tempnam( sys_get_temp_dir(), 'writes-' );
		$start = hrtime( true );
		$ended = process(
			array( 'wp', '--require=' . __DIR__ . '/lib/cli-writes.php', ...$words ),
			'',
			array( 'CODEBOX_WRITES' => $file ),
			ACTION_OUTPUT_BYTES
		);
		$took  = ( hrtime( true ) - $start ) / 1e6;
		$seen  = (array) json_decode( (string) file_get_contents( $file ), true );
		unlink( $file );
		$writes = array(
			'statements' => (int) ( $seen['statements'] ?? 0 ),
			'verbs'      => (object) ( $seen['verbs'] ?? array() ),
			'tables'     => array_values( (array) ( $seen['tables'] ?? array() ) ),
		);
		$action = array(
			'kind' => 'wp-cli',
			'name' => implode( ' ', array_slice( array_filter( $words, static fn ( string $word ): bool => ! str_starts_with( $word, '-' ) ), 0, 2 ) ),
			'args' => $words,
		);
		$json   = json_decode( $ended['stdout'] );
		$result = array(
			'exitCode' => $ended['exitCode'],
			'stdout'   => $ended['stdout'],
			'stderr'   => $ended['stderr'],
		);
		$more   = array(
			'target'      => array(
				'kind'    => 'wp-cli',
				'command' => $action['name'],
				'args'    => $words,
			),
			'safety'      => array(
				'mutates'             => $terms['mutates'],
				'capability'          => $terms['capability'],
				'destructiveBoundary' => $terms['destructiveBoundary'],
			),
			'diagnostics' => array(),
			'result'      => is_array( $json ) || is_object( $json ) ? $result + array( 'json' => $json ) : $result,
			'output'      => $ended['stdout'],
			'errors'      => $ended['stderr'],
			'outputCut'   => $ended['cut'],
			'exitCode'    => $ended['exitCode'],
			'durationMs'  => round( $took, 3 ),
		);
		if ( 0 !== $ended['exitCode'] ) {
			$terms['mutates'] = true;
			throw new Refusal( 'exit-status', 'WP-CLI exited with ' . $ended['exitCode'] . ': ' . cut( trim( (string) strrchr( "\n" . trim( $ended['stderr'] ), "\n" ) ), 500 ), action_document( $action, $terms, $writes, $more ) );
		}
		return action_document( $action, $terms, $writes, $more );
	}
);
