<?php
/**
 * Paths, invocation and principal of the runner of a browser session.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** Checks `browser_runner` of the input and makes the steps that write the task and the runner. */
final class RunnerPlan {

	private const DIRECTORY = '/tmp/wp-codebox';

	/** Maximum size of one captured file, in bytes. */
	private const MOST_BYTES = 10485760;

	/**
	 * Returns the plan of a session.
	 *
	 * @param array<string, mixed>       $runner  `browser_runner` of the input.
	 * @param list<array<string, mixed>> $bundles Agent bundles to import.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_browser_runner_path_invalid`, `wp_codebox_input_invalid`.
	 */
	public static function of( array $runner, array $bundles ): array {
		$plan = [
			'path'          => self::DIRECTORY . '/runner.php',
			'task_path'     => self::path( $runner, 'task_path', self::DIRECTORY . '/task.json' ),
			'result_path'   => self::path( $runner, 'result_path', self::DIRECTORY . '/result.json' ),
			'capture_paths' => [],
			'agent_bundles' => $bundles,
		];
		if ( $plan['task_path'] === $plan['result_path'] || in_array( $plan['path'], [ $plan['task_path'], $plan['result_path'] ], true ) ) {
			throw self::invalid( 'browser_runner.result_path' );
		}
		foreach ( array_values( (array) ( $runner['capture_paths'] ?? [] ) ) as $number => $capture ) {
			$path = self::path( $capture, 'path', '', "capture_paths[$number].path" );
			$most = (int) ( $capture['max_bytes'] ?? 1048576 );
			if ( $most < 1 || $most > self::MOST_BYTES ) {
				throw Failure::invalid_input( __( 'max_bytes of a captured file must be from 1 to 10485760.', 'codebox' ), [], [ 'field' => "browser_runner.capture_paths[$number].max_bytes" ] );
			}
			$plan['capture_paths'][] = array_filter( array_intersect_key( $capture, array_flip( [ 'name', 'kind', 'mime_type' ] ) ) ) + [
				'path'      => $path,
				'max_bytes' => $most,
			];
		}
		$plan['invocation'] = self::invocation( (array) ( $runner['invocation'] ?? [] ) );
		return $plan;
	}

	/**
	 * Returns the principal with which the runner of a session authorises calls.
	 *
	 * @param string $session_id Id of the session.
	 * @return array<string, mixed> `wp-codebox/runtime-principal/v1`.
	 */
	public static function principal( string $session_id ): array {
		return [
			'schema'          => 'wp-codebox/runtime-principal/v1',
			'auth_source'     => 'runtime',
			'request_context' => 'runtime',
			'owner_type'      => 'runtime',
			'client_id'       => 'wp-codebox-browser-runner',
			'workspace_id'    => 'wp-codebox',
			'audience'        => [
				'runtime_type' => 'wordpress-playground',
				'session_id'   => $session_id,
			],
		];
	}

	/**
	 * Returns the steps that write task and runner into the sandbox.
	 *
	 * @param array<string, mixed> $plan       Result of `of()`.
	 * @param array<string, mixed> $task       Task, `wp-codebox/task-input/v1`.
	 * @param string               $session_id Id of the session.
	 * @return list<array<string, mixed>>
	 */
	public static function steps( array $plan, array $task, string $session_id ): array {
		$principal = self::principal( $session_id );
		$payload   = [
			'schema'     => 'wp-codebox/browser-runner-task/v1',
			'session_id' => $session_id,
			'principal'  => $principal,
			'task'       => $task,
		];
		$steps     = [];
		foreach ( array_unique( array_map( 'dirname', [ $plan['path'], $plan['task_path'], $plan['result_path'] ] ) ) as $directory ) {
			$steps[] = [
				'step' => 'mkdir',
				'path' => $directory,
			];
		}
		$steps[] = GuestFiles::write( $plan['task_path'], (string) wp_json_encode( $payload, JSON_UNESCAPED_SLASHES ), true );
		$steps[] = GuestFiles::write( $plan['path'], RunnerSource::of( $plan + [ 'principal' => $principal ] + SiteDocuments::FACTS ), true );
		return $steps;
	}

	/**
	 * Returns a path of the sandbox.
	 *
	 * @param array<string, mixed> $from    Object that may contain the path.
	 * @param string               $name    Name of the member.
	 * @param string               $default Default.
	 * @param string|null          $field   Path of the field below browser_runner.
	 */
	private static function path( array $from, string $name, string $default, ?string $field = null ): string {
		$given = (string) ( $from[ $name ] ?? $default );
		$field = 'browser_runner.' . ( $field ?? $name );
		try {
			return GuestFiles::path( '' === $given ? $default : $given, $field );
		} catch ( Failure ) {
			throw self::invalid( $field );
		}
	}

	/**
	 * Builds the failure of a path.
	 *
	 * @param string $field Path of the field.
	 */
	private static function invalid( string $field ): Failure {
		return Failure::because(
			ErrorCode::BrowserRunnerPathInvalid,
			/* translators: %s: name of a field. */
			Sentence::of( __( '%s must be the path of a file below /wordpress or /tmp of the sandbox, and no other field may have the same path.', 'codebox' ), $field ),
			[],
			[ 'field' => $field ]
		);
	}

	/**
	 * Returns the invocation: an ability, or a hook that does the task. Empty: the sandbox's own default.
	 *
	 * @param array<string, mixed> $given `browser_runner.invocation`.
	 * @return array<string, mixed>
	 */
	private static function invocation( array $given ): array {
		if ( [] === array_filter( $given ) ) {
			return [];
		}
		$type = (string) ( $given['type'] ?? ( isset( $given['hook'] ) ? 'task' : 'ability' ) );
		$name = (string) ( 'task' === $type ? $given['hook'] ?? $given['name'] ?? '' : $given['name'] ?? '' );
		if ( 1 !== preg_match( 'task' === $type ? '#^[A-Za-z_][A-Za-z0-9_./-]{0,199}$#D' : '#^[a-z0-9-]+/[a-z0-9-]+(?:/[a-z0-9-]+)*$#D', $name ) ) {
			throw Failure::invalid_input( __( '"browser_runner.invocation" needs a valid "name" (the name of an ability) or "hook" (the action hook of a task).', 'codebox' ), [], [ 'field' => 'browser_runner.invocation.' . ( 'task' === $type ? 'hook' : 'name' ) ] );
		}
		return [
			'type'  => $type,
			'name'  => $name,
			'input' => (array) ( $given['input'] ?? [] ),
		];
	}
}
