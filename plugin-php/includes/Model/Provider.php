<?php
/**
 * Model provider.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * Holds API, base URL and key name. The host configures a provider; a task cannot.
 */
final class Provider {

	/**
	 * Creates a provider.
	 *
	 * @param string             $id                Id used in tasks and settings.
	 * @param string             $api               `openai-chat` or `anthropic-messages`.
	 * @param string             $base_url          Base URL without a trailing slash; '' when the operator
	 *   gives it with the task.
	 * @param string             $key_env           Environment name of the API key; '' when none is needed.
	 * @param string             $connector         Id of the connector that holds the key, or ''.
	 * @param bool               $key_required      Whether the provider needs a key.
	 * @param list<string>       $models            Allowed model ids; empty allows every model.
	 * @param int                $context_tokens    Context window in tokens; 0: the supervisor's default.
	 * @param int                $max_output_tokens Maximum tokens of one response; 0: the supervisor's default.
	 * @param array<string, int> $prices            Prices `input`, `output`, `cached_input?` in millionths of
	 *   a US dollar per million tokens; empty when unknown.
	 */
	public function __construct(
		public readonly string $id,
		public readonly string $api,
		public readonly string $base_url,
		public readonly string $key_env = '',
		public readonly string $connector = '',
		public readonly bool $key_required = true,
		public readonly array $models = [],
		public readonly int $context_tokens = 0,
		public readonly int $max_output_tokens = 0,
		public readonly array $prices = []
	) {}

	/**
	 * Returns a copy of the provider with the models, token limits and prices of a settings row.
	 *
	 * @param array<string, mixed> $row Validated row.
	 */
	public function with( array $row ): self {
		return new self( $this->id, $this->api, $this->base_url, $this->key_env, $this->connector, $this->key_required, (array) ( $row['models'] ?? [] ), (int) ( $row['context_tokens'] ?? 0 ), (int) ( $row['max_output_tokens'] ?? 0 ), (array) ( $row['prices'] ?? [] ) );
	}
}
