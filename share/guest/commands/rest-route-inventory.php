<?php
/**
 * Command `wordpress.rest-route-inventory`: lists the REST routes with methods and arguments.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require __DIR__ . '/lib/listing.php';
require __DIR__ . '/lib/wordpress.php';

finish(
	static function (): array {
		$server = rest_get_server();
		$rows   = array();
		foreach ( $server->get_routes() as $route => $handlers ) {
			$options   = (array) $server->get_route_options( $route );
			$endpoints = array();
			foreach ( $handlers as $handler ) {
				$arguments = array();
				foreach ( array_slice( (array) ( $handler['args'] ?? array() ), 0, 100, true ) as $name => $about ) {
					$about       = (array) $about;
					$arguments[] = array_filter(
						array(
							'name'     => (string) $name,
							'required' => ! empty( $about['required'] ),
							'type'     => $about['type'] ?? null,
							'enum'     => isset( $about['enum'] ) ? array_slice( array_values( (array) $about['enum'] ), 0, 50 ) : null,
						),
						static fn ( $value ): bool => null !== $value
					);
				}
				$endpoints[] = array(
					'methods'    => sorted_texts( array_keys( array_filter( (array) ( $handler['methods'] ?? array() ) ) ) ),
					'callback'   => callback_name( $handler['callback'] ?? null ),
					'permission' => isset( $handler['permission_callback'] ) ? callback_name( $handler['permission_callback'] ) : null,
					'arguments'  => $arguments,
				);
			}
			$rows[] = array(
				'route'     => (string) $route,
				'namespace' => (string) ( $options['namespace'] ?? '' ),
				'methods'   => sorted_texts( array_merge( array(), ...array_column( $endpoints, 'methods' ) ) ),
				'endpoints' => $endpoints,
			);
		}
		return array(
			'schema'     => 'wp-codebox/wordpress-rest-route-inventory/v1',
			'namespaces' => sorted_texts( $server->get_namespaces() ),
		) + listing( $rows, array( 'route' ), 500 );
	}
);
