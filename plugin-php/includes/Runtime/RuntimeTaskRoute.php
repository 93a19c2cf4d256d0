<?php
/**
 * REST route of runtime tasks.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Runtime;

use WP_Error;
use WP_REST_Request;
use WP_REST_Response;
use WPCodebox\Capabilities;
use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** `POST wp-codebox/v1/runtime-task` takes the request of the ability `run-runtime-task` as its JSON body, and calls this ability. */
final class RuntimeTaskRoute {

	/**
	 * Creates the route with its dependencies.
	 *
	 * @param Capabilities  $capabilities Permission checks of the user.
	 * @param ExtensionGate $gate         Check of the extension.
	 */
	public function __construct(
		private readonly Capabilities $capabilities,
		private readonly ExtensionGate $gate
	) {}

	/** Registers the route if WordPress has abilities and the extension fits; else the list of REST routes stays unchanged. */
	public function register(): void {
		add_action(
			'rest_api_init',
			function (): void {
				if ( ! function_exists( 'wp_get_ability' ) || null !== $this->gate->failure() ) {
					return;
				}
				register_rest_route(
					'wp-codebox/v1',
					'/runtime-task',
					[
						'methods'             => 'POST',
						'permission_callback' => fn(): bool => $this->capabilities->allows( Capabilities::RUN ),
						'callback'            => [ $this, 'run' ],
					]
				);
			}
		);
	}

	/**
	 * Runs the task of a request.
	 *
	 * @param WP_REST_Request $request Request.
	 */
	public function run( WP_REST_Request $request ): WP_REST_Response|WP_Error {
		$input = $request->get_json_params();
		if ( ! is_array( $input ) || [] !== $input && array_is_list( $input ) ) {
			return Failure::because( ErrorCode::RuntimeTaskRequestInvalid, __( 'The body of the request is not a JSON object.', 'codebox' ) )->to_wp_error();
		}
		$answer = wp_get_ability( 'wp-codebox/run-runtime-task' )->execute( $input );
		// WordPress's own errors about the input have no status.
		return is_wp_error( $answer ) ? Failure::from_wp_error( $answer, 400 )->to_wp_error() : new WP_REST_Response( $answer );
	}
}
