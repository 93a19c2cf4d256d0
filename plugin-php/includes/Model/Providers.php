<?php
/**
 * The model providers of this site.
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
 * A table of what is built in, and the rows of the option `wp_codebox_providers`. A row of a
 * built-in id adds models, sizes and prices to it: prices change, and are the host's to say.
 */
final class Providers {

	/** Ways to speak to a model. */
	public const APIS = [ 'openai-chat', 'anthropic-messages' ];

	/**
	 * Api, address, environment name of the key, connector, whether the key is required.
	 *
	 * @var array<string, array{string, string, string, string, bool}>
	 */
	private const BUILT_IN = [
		'openai'               => [ 'openai-chat', 'https://api.openai.com/v1', 'OPENAI_API_KEY', 'openai', true ],
		'anthropic'            => [ 'anthropic-messages', 'https://api.anthropic.com', 'ANTHROPIC_API_KEY', 'anthropic', true ],
		'google'               => [ 'openai-chat', 'https://generativelanguage.googleapis.com/v1beta/openai', 'GOOGLE_API_KEY', 'google', true ],
		// For the operator, who names the address with the task; the key, if any, is lent with it.
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
	 * All providers.
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
	 * Whether a provider is built in.
	 *
	 * @param string $id Id.
	 */
	public static function is_built_in( string $id ): bool {
		return isset( self::BUILT_IN[ $id ] );
	}

	/**
	 * Rows the site configured. What the option holds that no row can be is left out; where a key may go is judged when it is used.
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
	 * One provider.
	 *
	 * @param string $id Id.
	 * @throws Failure `wp_codebox_model_invalid`.
	 */
	public function get( string $id ): Provider {
		$all = $this->all();
		return $all[ $id ] ?? throw Failure::because(
			ErrorCode::ModelInvalid,
			/* translators: 1: id as given, 2: list of ids. */
			Sentence::of( __( 'There is no model provider "%1$s" on this site; there are %2$s.', 'codebox' ), Label::clean( $id ), implode( ', ', array_keys( $all ) ) ),
			[ __( 'The settings of Codebox add a provider: its address, how it is spoken to and what holds its key.', 'codebox' ) ]
		);
	}
}
