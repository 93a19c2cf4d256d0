<?php
/**
 * One model provider.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Model;

defined( 'ABSPATH' ) || exit;

/**
 * How it is spoken to, where it is and what opens it. The host configures it, never a task.
 */
final class Provider {

	/**
	 * Describes one.
	 *
	 * @param string             $id                Id, as tasks and settings name it.
	 * @param string             $api               `openai-chat` or `anthropic-messages`.
	 * @param string             $base_url          Its address without a trailing slash; '' when the operator names it with the task.
	 * @param string             $key_env           Environment name of its key; '' when it needs none.
	 * @param string             $connector         Id of the connector that holds its key, or ''.
	 * @param bool               $key_required      Whether it cannot be used without a key.
	 * @param list<string>       $models            Its models; empty: whatever a task names.
	 * @param int                $context_tokens    Tokens its window holds; 0: the default of the runner.
	 * @param int                $max_output_tokens Most tokens of one answer; 0: the default of the runner.
	 * @param array<string, int> $prices            `input`, `output`, `cached_input?`: millionths of a US dollar per million tokens; empty: unknown.
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
	 * The same provider with the models, sizes and prices of a row.
	 *
	 * @param array<string, mixed> $row Row to read.
	 */
	public function with( array $row ): self {
		return new self( $this->id, $this->api, $this->base_url, $this->key_env, $this->connector, $this->key_required, (array) ( $row['models'] ?? [] ), (int) ( $row['context_tokens'] ?? 0 ), (int) ( $row['max_output_tokens'] ?? 0 ), (array) ( $row['prices'] ?? [] ) );
	}
}
