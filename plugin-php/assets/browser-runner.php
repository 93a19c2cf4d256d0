<?php
/**
 * Template of the runner of a browser session: RunnerSource removes the guard and puts the configuration in.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

defined( 'ABSPATH' ) || exit;

$wp_codebox_runner = ( static function ( array $config ): ?Closure {
	$principal = $config['principal'];
	$session   = $principal['audience']['session_id'];
	$answer    = static function ( array $members ) use ( $config, $session ): array {
		return [
			'success'          => ! isset( $members['error'] ),
			'schema'           => 'wp-codebox/browser-runner-result/v1',
			'execution'        => $config['execution'],
			'execution_scope'  => $config['execution_scope'],
			'permission_model' => $config['permission_model'],
			'session_id'       => $session,
		] + $members;
	};
	$refused = static fn( string $code, string $message ): array => [ 'error' => [ 'code' => $code, 'message' => $message ] ];

	// Facts of the process. ABSPATH is set when WordPress has loaded; a constant that only names the runtime would prove nothing.
	$wasm   = 1 === preg_match( '/^Emscripten .*\bwasm32\b/', php_uname() );
	$engine = extension_loaded( 'post_message_to_js' ) || extension_loaded( 'wasm_memory_storage' ) || function_exists( 'post_message_to_js' );
	$path   = defined( 'ABSPATH' ) ? ABSPATH : ( is_file( '/wordpress/wp-load.php' ) ? '/wordpress/' : '' );
	if ( ! $wasm || ! $engine || '/wordpress/' !== $path ) {
		echo json_encode( $answer( $refused( 'wp_codebox_browser_runner_not_playground', 'This runner works only in the disposable WordPress of a browser session; it did nothing here.' ) ) );
		return null;
	}

	$run = static function () use ( $config, $principal, $session, $refused ): array {
		$payload = json_decode( (string) file_get_contents( $config['task_path'] ), true );
		if ( ! is_array( $payload ) || ( $payload['principal'] ?? null ) !== $principal || ( $payload['session_id'] ?? null ) !== $session ) {
			return $refused( 'wp_codebox_browser_runner_principal_invalid', 'The task belongs to another client, workspace, runtime type or session than this runner.' );
		}
		$task       = (array) ( $payload['task'] ?? [] );
		$invocation = $config['invocation'];
		if ( [] === $invocation ) {
			$ability    = (string) apply_filters( 'wp_codebox_browser_runtime_default_ability', '' );
			$defaults   = '' === $ability ? [] : [ 'type' => 'ability', 'name' => $ability, 'input' => [] ];
			$invocation = (array) apply_filters( 'wp_codebox_browser_runtime_default_invocation', $defaults, $task, $defaults );
		}
		$name = (string) ( $invocation['name'] ?? '' );
		if ( '' === $name ) {
			return $refused( 'wp_codebox_browser_task_unavailable', 'Nothing in this sandbox does the task: name an ability or a hook in browser_runner.invocation.' );
		}
		foreach ( $config['agent_bundles'] as $bundle ) {
			$document = json_decode( (string) file_get_contents( $bundle['path'] ), true );
			foreach ( (array) apply_filters( 'wp_codebox_browser_runtime_bundle_importer_paths', [] ) as $file ) {
				is_file( $file ) && require_once $file;
			}
			$function = (string) apply_filters( 'wp_codebox_browser_runtime_bundle_import_function', '' );
			$filter   = (string) apply_filters( 'wp_codebox_browser_runtime_bundle_import_filter', '' );
			if ( '' !== $function && is_callable( $function ) ) {
				$imported = $function( $document, $bundle );
			} else {
				$imported = '' === $filter ? null : apply_filters( $filter, null, $document, $bundle );
			}
			if ( null === $imported || false === $imported || is_wp_error( $imported ) ) {
				return $refused( 'wp_codebox_browser_function_unavailable', 'Nothing in this sandbox imports the agent bundle ' . $bundle['slug'] . '.' );
			}
		}
		$input = (array) ( $invocation['input'] ?? [] ) + [ 'goal' => (string) ( $task['goal'] ?? '' ) ];
		$tools = array_values( array_filter( (array) ( $task['allowed_tools'] ?? [] ), 'is_string' ) );
		$input = (array) apply_filters( 'wp_codebox_browser_runtime_invocation_input', $input, $payload, $invocation, $session, [], $tools, array_keys( (array) ( $task['sandbox_tool_policy']['tools'] ?? [] ) ) );
		if ( true !== apply_filters( 'wp_codebox_browser_runtime_provider_ready', true, $payload, $input, $invocation ) ) {
			return $refused( 'wp_codebox_browser_provider_unavailable', 'The model provider of the task is not ready in this sandbox.' );
		}
		// The principal allows what this session may do; a callback of the sandbox can only take that away.
		$allowed = true === apply_filters( 'wp_codebox_browser_runtime_principal_permission', true, $principal, $input, $session );
		if ( ! $allowed ) {
			return $refused( 'wp_codebox_browser_runner_principal_invalid', 'This sandbox does not allow the principal (agent identity) of the session to make this call.' );
		}
		$filter = (string) apply_filters( 'wp_codebox_browser_runtime_principal_permission_filter', '' );
		$grant  = static fn() => true;
		'' === $filter || add_filter( $filter, $grant );
		$before = get_current_user_id();
		$admins = get_users( [ 'role' => 'administrator', 'number' => 1, 'fields' => 'ID' ] );
		// A user of the disposable site; no state of a user of the host exists here.
		wp_set_current_user( (int) ( $admins[0] ?? 0 ) );
		try {
			if ( 'task' === ( $invocation['type'] ?? 'ability' ) ) {
				if ( ! has_filter( $name ) ) {
					return $refused( 'wp_codebox_browser_task_unavailable', 'Nothing in this sandbox answers the hook ' . $name . '.' );
				}
				$result = apply_filters( $name, null, $input, $payload, $principal );
			} else {
				$names = (array) apply_filters( 'wp_codebox_browser_runtime_ability_names', [] );
				$found = function_exists( 'wp_has_ability' ) && wp_has_ability( $name ) && ( [] === $names || in_array( $name, $names, true ) );
				if ( ! $found ) {
					return $refused( 'wp_codebox_browser_ability_unavailable', 'This sandbox has no ability ' . $name . ' that its runner may call.' );
				}
				$result = wp_get_ability( $name )->execute( $input );
			}
		} finally {
			wp_set_current_user( $before );
			'' === $filter || remove_filter( $filter, $grant );
		}
		if ( is_wp_error( $result ) ) {
			return $refused( (string) $result->get_error_code(), $result->get_error_message() );
		}
		return [ 'result' => $result, 'target' => (string) apply_filters( 'wp_codebox_browser_runtime_executor_target', 'wp-codebox/browser-playground' ) ];
	};
	return static function () use ( $config, $run, $refused, $answer ): void {
		try {
			$members = $run();
		} catch ( Throwable $thrown ) {
			$members = $refused( 'wp_codebox_browser_runner_exception', $thrown::class . ': ' . $thrown->getMessage() );
		}
		$members['captures'] = [];
		foreach ( $config['capture_paths'] as $capture ) {
			$size  = is_file( $capture['path'] ) ? (int) filesize( $capture['path'] ) : -1;
			$taken = $size >= 0 && $size <= $capture['max_bytes'];

			$members['captures'][] = $capture + [
				'status' => $taken ? 'captured' : ( $size < 0 ? 'missing' : 'too-large' ),
				'bytes'  => max( 0, $size ),
			] + ( $taken ? [ 'content_base64' => base64_encode( (string) file_get_contents( $capture['path'] ) ) ] : [] );
		}
		$document = (string) json_encode( $answer( $members ), JSON_UNESCAPED_SLASHES | JSON_PARTIAL_OUTPUT_ON_ERROR );
		is_dir( dirname( $config['result_path'] ) ) || mkdir( dirname( $config['result_path'] ), 0777, true );
		file_put_contents( $config['result_path'], $document );
		echo $document;
	};
} )( json_decode( base64_decode( '{{CONFIG}}' ), true ) );

if ( null !== $wp_codebox_runner ) {
	// Not inside a function: plugins declare global variables at the top of their files.
	defined( 'ABSPATH' ) || require '/wordpress/wp-load.php';
	$wp_codebox_runner();
}
