<?php
/**
 * What a page may use on this site for a browser session.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Model\Inheritance;

defined( 'ABSPATH' ) || exit;

/** Names the connectors of a session and how the page reaches this site. Secrets are never part of it. */
final class RuntimeAccess {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Inheritance $inheritance Finds connectors.
	 */
	public function __construct( private readonly Inheritance $inheritance ) {}

	/**
	 * Returns the access of a session.
	 *
	 * @param array<string, mixed> $input Result of `SessionInput::opened()`.
	 * @return array{document: array<string, mixed>, missing: list<string>} missing: connectors that cannot be used.
	 */
	public function of( array $input ): array {
		$inherit = (array) ( $input['inherit'] ?? [] );
		$names   = SessionInput::texts( $inherit['connectors'] ?? [] );
		$rows    = [];
		$missing = [];
		foreach ( [] === $names ? [] : $this->inheritance->resolve( $names, $inherit + [ 'scope' => 'browser-connector:request' ], $input ) as $connector ) {
			$row     = $connector->row();
			$rows[]  = array_intersect_key( $row, array_flip( [ 'name', 'status', 'provider', 'model', 'credentials' ] ) );
			$missing = $connector->status->usable() ? $missing : [ ...$missing, $connector->name ];
		}
		return [
			'document' => [
				'schema'            => 'wp-codebox/browser-runtime-access/v1',
				'authentication'    => 'wordpress-cookie-and-nonce',
				'connector_ability' => 'wp-codebox/browser-connector-request',
				'connectors'        => $rows,
				'secrets'           => 'never-in-the-browser',
			],
			'missing'  => $missing,
		];
	}
}
