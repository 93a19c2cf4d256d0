<?php
/**
 * Model providers of this site.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Combines the built-in table with the rows of the option `wp_codebox_providers`. A row with a built-in id
 * adds models, token limits and prices. Prices change over time, so the plugin contains none.
 */
final class Providers {

	/** Supported model APIs. */
	public const APIS = [ 'openai-chat', 'anthropic-messages' ];

	/**
	 * Built-in providers by id: API, base URL, environment name of the key, connector id, whether the key is required.
	 *
	 * @var array<string, array{string, string, string, string, bool}>
	 */
	private const BUILT_IN = [
		'openai'               => [ 'openai-chat', 'https://api.openai.com/v1', 'OPENAI_API_KEY', 'openai', true ],
		'anthropic'            => [ 'anthropic-messages', 'https://api.anthropic.com', 'ANTHROPIC_API_KEY', 'anthropic', true ],
		'google'               => [ 'openai-chat', 'https://generativelanguage.googleapis.com/v1beta/openai', 'GOOGLE_API_KEY', 'google', true ],
		// For the operator, who gives URL and optional key with the task.
		'openai-compatible'    => [ 'openai-chat', '', 'MODEL_API_KEY', '', false ],
		'anthropic-compatible' => [ 'anthropic-messages', '', 'MODEL_API_KEY', '', false ],
	];

	/**
	 * Creates the table with its dependencies.
	 *
	 * @param Settings $settings Settings of the host (plugin settings page and constants).
	 */
	public function __construct( private readonly Settings $settings ) {}

	/**
	 * Returns the built-in and the configured providers by id.
	 *
	 * @return array<string, Provider>
	 */
	public function all(): array {
		$providers = [];
		foreach ( self::BUILT_IN as $id => [ $api, $url, $key, $connector, $required ] ) {
			$providers[ $id ] = new Provider( $id, $api, $url, $key, $connector, $required );
		}
		foreach ( $this->rows() as $id => $row ) {
			$providers[ $id ] = isset( self::BUILT_IN[ $id ] ) ? $providers[ $id ]->with( $row ) : ProviderRows::provider( $row );
		}
		return $providers;
	}

	/**
	 * Checks whether a provider is built in.
	 *
	 * @param string $id Provider id.
	 */
	public static function is_built_in( string $id ): bool {
		return isset( self::BUILT_IN[ $id ] );
	}

	/**
	 * Returns the configured rows. Invalid rows of the option are skipped. Whether a key may be sent to the host of
	 * the base URL is checked when the key is used.
	 *
	 * @return array<string, array<string, mixed>>
	 */
	private function rows(): array {
		$own = [];
		foreach ( $this->settings->providers() as $id => $row ) {
			try {
				$own += ProviderRows::read( [ $id => $row ] );
			} catch ( Failure ) {
				continue;
			}
		}
		return $own;
	}

	/**
	 * Returns the provider with an id.
	 *
	 * @param string $id Provider id.
	 * @throws Failure `wp_codebox_model_invalid`.
	 */
	public function get( string $id ): Provider {
		$all = $this->all();
		return $all[ $id ] ?? throw Failure::because(
			ErrorCode::ModelInvalid,
			/* translators: 1: id as given, 2: list of ids. */
			Sentence::of( __( 'There is no model provider "%1$s" on this site; available: %2$s.', 'codebox' ), Label::clean( $id ), implode( ', ', array_keys( $all ) ) ),
			[ __( 'Add a provider in the settings of Codebox: base URL, API, and where the key is stored.', 'codebox' ) ]
		);
	}
}
