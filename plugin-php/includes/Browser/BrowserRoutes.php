<?php
/**
 * REST routes of browser sessions.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WP_Error;
use WP_REST_Request;
use WP_REST_Response;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Each route calls the ability of the same task, which checks rights and input. */
final class BrowserRoutes {

	private const REF = 'prepared:[A-Za-z0-9][A-Za-z0-9._-]{0,99}:[0-9a-f]{64}';

	/** Registers the routes where WordPress has abilities. */
	public function register(): void {
		add_action(
			'rest_api_init',
			function (): void {
				if ( ! function_exists( 'wp_get_ability' ) ) {
					return;
				}
				foreach ( [ '/browser-blueprint-ref', '/browser-blueprint-ref/(?P<ref>' . self::REF . ')' ] as $route ) {
					$this->route( $route, 'GET', static fn(): string => 'hydrate-browser-blueprint-ref', [ 'ref', 'token', 'cache_key', 'input_hash' ] );
				}
				$this->route( '/preview-boot-ref', 'POST', static fn(): string => 'preview-boot-ref' );
				$this->route( '/browser-contained-site-sync/(?P<operation>[a-z-]{1,40})', [ 'GET', 'POST' ], static fn( WP_REST_Request $request ): string => 'browser-contained-site-sync-' . $request['operation'] );
			}
		);
	}

	/**
	 * Registers one route.
	 *
	 * @param string                           $path    Path with its pattern.
	 * @param string|list<string>              $methods HTTP methods.
	 * @param callable(WP_REST_Request): string $ability Returns the name of the ability.
	 * @param list<string>                     $fields  Parameters that are the input of the ability; empty: all of body or query.
	 */
	private function route( string $path, string|array $methods, callable $ability, array $fields = [] ): void {
		register_rest_route(
			'wp-codebox/v1',
			$path,
			[
				'methods'             => $methods,
				'permission_callback' => fn( WP_REST_Request $request ): bool|WP_Error => $this->permitted( $ability( $request ), $this->input( $request, $fields ) ),
				'callback'            => fn( WP_REST_Request $request ): WP_REST_Response|WP_Error => $this->call( $ability( $request ), $this->input( $request, $fields ) ),
			]
		);
	}

	/**
	 * Returns the input of the ability.
	 *
	 * @param WP_REST_Request $request Request.
	 * @param list<string>    $fields  Parameters that are its input.
	 * @return array<string, mixed>
	 */
	private function input( WP_REST_Request $request, array $fields ): array {
		if ( [] !== $fields ) {
			return array_intersect_key( $request->get_params(), array_flip( $fields ) );
		}
		$given = 'GET' === $request->get_method() ? $request->get_query_params() : $request->get_json_params();
		$given = is_array( $given ) ? array_diff_key( $given, [ '_wpnonce' => 1, '_locale' => 1, 'rest_route' => 1 ] ) : [];
		return isset( $given['input'] ) && is_array( $given['input'] ) ? $given['input'] : $given;
	}

	/**
	 * Checks whether the caller may use the ability; being logged in is not enough.
	 *
	 * @param string               $name  Name of the ability.
	 * @param array<string, mixed> $input Input.
	 */
	private function permitted( string $name, array $input ): bool|WP_Error {
		$ability = wp_has_ability( 'wp-codebox/' . $name ) ? wp_get_ability( 'wp-codebox/' . $name ) : null;
		if ( null === $ability ) {
			return Failure::because( ErrorCode::BrowserContainedSiteSyncOperationInvalid, __( 'This site does not have the requested operation; the ability browser-contained-site-sync-delegation lists all operations.', 'codebox' ) )->to_wp_error();
		}
		return true === $ability->check_permissions( $input );
	}

	/**
	 * Calls the ability. No answer may be stored by a cache.
	 *
	 * @param string               $name  Name of the ability.
	 * @param array<string, mixed> $input Input.
	 */
	private function call( string $name, array $input ): WP_REST_Response|WP_Error {
		$answer = wp_get_ability( 'wp-codebox/' . $name )->execute( $input );
		// WordPress's own errors about the input have no status.
		return is_wp_error( $answer ) ? Failure::from_wp_error( $answer, 400 )->to_wp_error() : new WP_REST_Response( $answer, 200, [ 'Cache-Control' => 'no-store' ] );
	}
}
