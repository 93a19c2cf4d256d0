<?php
/**
 * Reads the results of `wp-codebox` for ci/wp-codebox-ci.
 *
 *   php report.php task-input 0 DIR   prints the task that the inputs describe
 *   php report.php KIND STATUS DIR    reads DIR/result.json of a job phpunit, recipe or task that ended with STATUS; writes
 *                                     DIR/summary.md, DIR/junit.xml and DIR/change.patch, and prints outputs as name=value lines
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\CI;

/**
 * Ends the job, which is set up wrongly.
 *
 * @param string $message What is wrong and what to do.
 */
function refuse( string $message ): never {
	fwrite( STDERR, "wp-codebox-ci: error: $message\n" );
	exit( 2 );
}

/**
 * Returns an input of the job; '' when it is not given.
 *
 * @param string $name Name without the prefix.
 */
function input( string $name ): string {
	return trim( (string) getenv( "CODEBOX_CI_$name" ) );
}

/**
 * Returns the non-empty lines of an input.
 *
 * @param string $name Name without the prefix.
 * @return list<string>
 */
function lines( string $name ): array {
	return array_values( array_filter( array_map( 'trim', explode( "\n", input( $name ) ) ), static fn ( string $line ): bool => '' !== $line ) );
}

/**
 * Returns the value of an input as a whole number, or null when the input is not given.
 *
 * @param string $name Name without the prefix.
 */
function number( string $name ): ?int {
	$text = input( $name );
	if ( '' === $text ) {
		return null;
	}
	return 1 === preg_match( '/^\d{1,9}$/', $text ) ? (int) $text : refuse( "CODEBOX_CI_$name is '$text'; it must be a whole number" );
}

/**
 * Returns the path in the guest of the directory that the agent works on.
 *
 * @param string $project Directory on this machine.
 */
function guest_path( string $project ): string {
	$slug = '' !== input( 'SLUG' ) ? input( 'SLUG' ) : basename( $project );
	if ( 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]*$/', $slug ) ) {
		refuse( "the name '$slug' cannot be a directory of WordPress; give CODEBOX_CI_SLUG" );
	}
	$style = "$project/style.css";
	if ( is_file( $style ) && 1 === preg_match( '/^[ \t\/*#@]*Theme Name:/mi', (string) file_get_contents( $style, false, null, 0, 8192 ) ) ) {
		return "/wordpress/wp-content/themes/$slug";
	}
	foreach ( glob( addcslashes( $project, '*?[]{}\\' ) . '/*.php' ) ?: array() as $file ) {
		if ( 1 === preg_match( '/^[ \t\/*#@]*Plugin Name:/mi', (string) file_get_contents( $file, false, null, 0, 8192 ) ) ) {
			return "/wordpress/wp-content/plugins/$slug";
		}
	}
	return "/workspace/$slug";
}

/**
 * Returns the input of `run-agent-task`: the members of the file, if one is given, and those of the inputs.
 *
 * @return array<string,mixed>
 */
function task_input(): array {
	$task = array();
	if ( '' !== input( 'TASK_FILE' ) ) {
		$text = is_file( input( 'TASK_FILE' ) ) ? file_get_contents( input( 'TASK_FILE' ) ) : false;
		$task = is_string( $text ) ? json_decode( $text, true ) : null;
		if ( ! is_array( $task ) || array_is_list( $task ) ) {
			refuse( 'CODEBOX_CI_TASK_FILE ' . input( 'TASK_FILE' ) . ' is not a file with one JSON object' );
		}
	}
	$given = array(
		'goal'                 => input( 'GOAL' ),
		'agent'                => input( 'AGENT' ),
		'agent_command'        => input( 'AGENT_COMMAND' ),
		'provider'             => input( 'PROVIDER' ),
		'model'                => input( 'MODEL' ),
		'base_url'             => input( 'MODEL_URL' ),
		'mode'                 => input( 'MODE' ),
		'wp'                   => input( 'WORDPRESS' ),
		'allowed_tools'        => lines( 'ALLOWED_TOOLS' ),
		'expected_artifacts'   => lines( 'EXPECTED_ARTIFACTS' ),
		'checks'               => lines( 'CHECKS' ),
		'secret_env'           => lines( 'SECRET_ENV' ),
		'max_turns'            => number( 'MAX_TURNS' ),
		'task_timeout_seconds' => number( 'TASK_TIMEOUT_SECONDS' ),
		'services'             => lines( 'SERVICES' ),
	);
	foreach ( $given as $name => $value ) {
		if ( null !== $value && '' !== $value && array() !== $value ) {
			$task[ $name ] = $value;
		}
	}
	if ( ! isset( $task['goal'] ) && ! isset( $task['agent_workload'] ) && ! isset( $task['workload'] ) && ! isset( $task['parent_request'] ) ) {
		refuse( 'give the goal of the task with CODEBOX_CI_GOAL or in CODEBOX_CI_TASK_FILE' );
	}
	if ( ! isset( $task['mounts'] ) && ! isset( $task['workspaces'] ) ) {
		$project = realpath( '' !== input( 'PROJECT' ) ? input( 'PROJECT' ) : '.' );
		if ( false === $project || ! is_dir( $project ) ) {
			refuse( 'CODEBOX_CI_PROJECT ' . input( 'PROJECT' ) . ' is not a directory' );
		}
		$task['mounts'] = array(
			array(
				'source' => $project,
				'target' => guest_path( $project ),
			),
		);
	}
	return $task;
}

/**
 * Makes a text harmless in one line of Markdown.
 *
 * @param mixed $text Text of a result.
 */
function markdown( mixed $text ): string {
	$line = preg_replace( '/\s+/', ' ', is_scalar( $text ) ? (string) $text : '' );
	return htmlspecialchars( addcslashes( mb_strcut_or( (string) $line, 400 ), '\\`*_[]|#!' ), ENT_NOQUOTES );
}

/**
 * Cuts a text to a number of bytes, at the end of a character.
 *
 * @param string $text  Text.
 * @param int    $bytes Maximum length.
 */
function mb_strcut_or( string $text, int $bytes ): string {
	if ( strlen( $text ) <= $bytes ) {
		return $text;
	}
	return (string) preg_replace( '/[\xC0-\xFF][\x80-\xBF]*$/', '', substr( $text, 0, $bytes ) ) . '…';
}

/**
 * Escapes a text for XML; characters that XML 1.0 cannot contain become a question mark.
 *
 * @param mixed $text Text of a result.
 */
function xml( mixed $text ): string {
	$text = is_scalar( $text ) ? (string) $text : '';
	return htmlspecialchars( (string) preg_replace( '/[\x00-\x08\x0B\x0C\x0E-\x1F]/', '?', $text ), ENT_QUOTES | ENT_XML1 | ENT_SUBSTITUTE, 'UTF-8' );
}

/**
 * Writes a JUnit document.
 *
 * @param string                                                                $file  Path.
 * @param string                                                                $name  Name of the suite.
 * @param list<array{name:string,seconds:float,problem:?string,skipped:bool}> $cases Cases in their order.
 */
function junit( string $file, string $name, array $cases ): void {
	$failed  = count( array_filter( $cases, static fn ( array $one ): bool => null !== $one['problem'] ) );
	$skipped = count( array_filter( $cases, static fn ( array $one ): bool => $one['skipped'] ) );
	$counts  = sprintf( 'tests="%d" failures="%d" errors="0" skipped="%d" time="%.3f"', count( $cases ), $failed, $skipped, array_sum( array_column( $cases, 'seconds' ) ) );
	$text    = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites $counts>\n  <testsuite name=\"" . xml( $name ) . "\" $counts>\n";
	foreach ( $cases as $case ) {
		$inner = null !== $case['problem'] ? '<failure message="' . xml( strtok( $case['problem'], "\n" ) ) . '">' . xml( $case['problem'] ) . '</failure>' : ( $case['skipped'] ? '<skipped/>' : '' );
		$text .= sprintf( "    <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\">%s</testcase>\n", xml( $name ), xml( $case['name'] ), $case['seconds'], $inner );
	}
	file_put_contents( $file, "$text  </testsuite>\n</testsuites>\n" );
}

/**
 * Prints an annotation for the run when GitHub reads the output.
 *
 * @param string $title   Title.
 * @param string $message Message.
 */
function annotate( string $title, string $message ): void {
	if ( false === getenv( 'GITHUB_ACTIONS' ) ) {
		return;
	}
	$escape = static fn ( string $text, array $more ): string => strtr( $text, array( '%' => '%25', "\r" => '%0D', "\n" => '%0A' ) + $more );
	// Standard output has the outputs; GitHub reads commands from both.
	fwrite( STDERR, sprintf( "::error title=%s::%s\n", $escape( $title, array( ':' => '%3A', ',' => '%2C' ) ), $escape( $message, array() ) ) );
}

/**
 * Reports a job, and prints its outputs.
 *
 * @param string $kind      Job: phpunit, recipe or task.
 * @param int    $status    Exit status of wp-codebox.
 * @param string $directory Directory of the results.
 */
function report( string $kind, int $status, string $directory ): void {
	$text = is_file( "$directory/result.json" ) ? (string) file_get_contents( "$directory/result.json" ) : '';
	$read = json_decode( $text, true );
	$read = is_array( $read ) ? $read : array();
	if ( array() === $read && 0 === $status ) {
		refuse( "$directory/result.json is not a JSON object although wp-codebox ended with 0" );
	}
	$error   = (string) ( $read['error']['message'] ?? ( array() === $read ? "wp-codebox ended with $status and printed no result; its log has the cause" : '' ) );
	$outputs = array(
		'success'    => 0 === $status ? 'true' : 'false',
		'exit-code'  => (string) $status,
		'status'     => (string) ( $read['status'] ?? $read['outcome'] ?? ( 0 === $status ? 'passed' : 'failed' ) ),
		'error-code' => (string) ( $read['error']['code'] ?? '' ),
		'run-id'     => (string) ( $read['run']['run_id'] ?? $read['run']['runId'] ?? $read['shards'][0]['runId'] ?? '' ),
		'result'     => "$directory/result.json",
	);
	$rows    = array();
	$cases   = array();
	switch ( $kind ) {
		case 'phpunit':
			$summary = $read['summary'] ?? array();
			foreach ( array( 'total', 'passed', 'failed', 'skipped' ) as $name ) {
				$outputs[ "tests-$name" ] = (string) (int) ( $summary[ $name ] ?? 0 );
			}
			$rows[] = sprintf( '%d tests, %d passed, %d failed, %d skipped', ...array_map( 'intval', array( $summary['total'] ?? 0, $summary['passed'] ?? 0, $summary['failed'] ?? 0, $summary['skipped'] ?? 0 ) ) );
			foreach ( array_slice( $read['failures'] ?? array(), 0, 20 ) as $row ) {
				$rows[] = '- ' . markdown( ( $row['suite'] ?? '' ) . '::' . ( $row['test'] ?? '' ) ) . ' in ' . markdown( ( $row['file'] ?? '' ) . ':' . ( $row['line'] ?? '' ) ) . ': ' . markdown( $row['message'] ?? '' );
			}
			break;
		case 'recipe':
			$failures = array();
			foreach ( $read['stepFailures'] ?? array() as $row ) {
				$failures[ ( $row['phase'] ?? '' ) . ( $row['index'] ?? '' ) ] = (string) ( $row['error']['message'] ?? 'failed' );
			}
			foreach ( $read['executions'] ?? array() as $row ) {
				$key     = ( $row['recipePhase'] ?? '' ) . ( $row['recipeStepIndex'] ?? '' );
				$problem = $failures[ $key ] ?? null;
				if ( null !== $problem ) {
					unset( $failures[ $key ] );
					$output  = trim( (string) ( $row['stderr'] ?? '' ) . "\n" . (string) ( $row['stdout'] ?? '' ) );
					$problem = mb_strcut_or( "$problem\n$output", 8000 );
				}
				$cases[] = array(
					'name'    => sprintf( '%s[%s] %s', $row['recipePhase'] ?? 'step', $row['recipeStepIndex'] ?? '', $row['recipeCommand'] ?? $row['command'] ?? '' ),
					'seconds' => (float) ( $row['durationMs'] ?? 0 ) / 1000,
					'problem' => $problem,
					'skipped' => false,
				);
			}
			foreach ( $failures as $problem ) {
				$cases[] = array(
					'name'    => 'step without output',
					'seconds' => 0.0,
					'problem' => $problem,
					'skipped' => false,
				);
			}
			$rows[] = count( $cases ) . ' steps';
			break;
		default:
			$changed            = array_map( 'strval', array_column( $read['changed_files'] ?? array(), 'path' ) );
			$outputs['changed'] = array() === $changed ? 'false' : 'true';
			$outputs['changed-files-count'] = (string) count( $changed );
			$outputs['agent-task-status']   = (string) ( $read['agent_task_status'] ?? '' );
			$outputs['artifact-id']         = (string) ( $read['artifact_id'] ?? '' );

			$rows[] = markdown( $read['summary'] ?? '' );
			foreach ( array_slice( $changed, 0, 50 ) as $path ) {
				$rows[] = '- ' . markdown( $path );
			}
			foreach ( $read['checks'] ?? array() as $row ) {
				$passed  = 'passed' === ( $row['status'] ?? '' );
				$cases[] = array(
					'name'    => 'check ' . (string) ( $row['command'] ?? '' ),
					'seconds' => (float) ( $row['duration_ms'] ?? 0 ) / 1000,
					'problem' => $passed || 'skipped' === ( $row['status'] ?? '' ) ? null : 'the check ' . (string) ( $row['status'] ?? 'failed' ),
					'skipped' => 'skipped' === ( $row['status'] ?? '' ),
				);
			}
			$patch = $read['paths']['patch'] ?? null;
			if ( array() !== $changed && is_string( $patch ) && is_file( $patch ) ) {
				copy( $patch, "$directory/change.patch" );
				$outputs['patch'] = "$directory/change.patch";
			}
	}
	if ( 'phpunit' !== $kind ) {
		// A run that failed as a whole must not leave a report without a failure.
		if ( 0 !== $status && array() === array_filter( array_column( $cases, 'problem' ) ) ) {
			$cases[] = array(
				'name'    => 'run',
				'seconds' => 0.0,
				'problem' => '' !== $error ? $error : "exit status $status",
				'skipped' => false,
			);
		}
		junit( "$directory/junit.xml", "wp-codebox $kind", $cases );
		foreach ( $cases as $case ) {
			if ( null !== $case['problem'] ) {
				annotate( $case['name'], mb_strcut_or( $case['problem'], 2000 ) );
			}
		}
	} elseif ( '' !== $error ) {
		annotate( 'wp-codebox phpunit', $error );
	}
	if ( is_file( "$directory/junit.xml" ) ) {
		$outputs['junit'] = "$directory/junit.xml";
	}
	if ( '' !== $error ) {
		$rows[] = 'Error: ' . markdown( $error );
	}
	file_put_contents( "$directory/summary.md", "### wp-codebox $kind: " . markdown( $outputs['status'] ) . " (exit $status)\n\n" . implode( "\n", $rows ) . "\n" );
	foreach ( $outputs as $name => $value ) {
		echo $name, '=', strtr( $value, "\r\n", '  ' ), "\n";
	}
}

$arguments = array_slice( $argv, 1 );
if ( 3 !== count( $arguments ) || ! in_array( $arguments[0], array( 'task-input', 'phpunit', 'recipe', 'task' ), true ) ) {
	refuse( 'use: report.php task-input|phpunit|recipe|task STATUS DIRECTORY' );
}
if ( 'task-input' === $arguments[0] ) {
	echo json_encode( task_input(), JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_THROW_ON_ERROR ), "\n";
} else {
	report( $arguments[0], (int) $arguments[1], rtrim( $arguments[2], '/' ) );
}
