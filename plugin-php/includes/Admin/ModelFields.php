<?php
/**
 * Model fields of the settings page.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\Model\Connectors;
use WPCodebox\Model\ProviderOverview;
use WPCodebox\Model\Providers;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Fields for providers, for the default model, and for the instructions of the built-in agent. No field holds
 * a key.
 */
final class ModelFields {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Settings $settings Effective settings.
	 */
	public function __construct( private readonly Settings $settings ) {}

	/** Declares the section and the fields for models. */
	public function add_fields(): void {
		$page = SettingsPage::SLUG;
		add_settings_section( 'models', __( 'Models', 'codebox' ), [ $this, 'about' ], $page );
		foreach ( [
			Settings::DEFAULT_PROVIDER => [ __( 'Default model provider', 'codebox' ), [ $this, 'provider' ] ],
			Settings::DEFAULT_MODEL    => [ __( 'Default model', 'codebox' ), [ $this, 'model' ] ],
			Settings::PROVIDERS        => [ __( 'Own model providers', 'codebox' ), [ $this, 'providers' ] ],
			Settings::INSTRUCTIONS     => [ __( 'Instructions', 'codebox' ), [ $this, 'instructions' ] ],
		] as $option => [ $label, $field ] ) {
			add_settings_field( $option, $label, $field, $page, 'models', [ 'label_for' => $option ] );
		}
	}

	/** Prints the text above the model fields: what a model is used for, and which API keys exist. */
	public function about(): void {
		echo '<p>' . esc_html__( 'The built-in agent needs a model and no program. The key of the model provider stays with this site: it is read when a task starts and never enters the sandbox.', 'codebox' ) . '</p><ul>';
		foreach ( ProviderOverview::of( $this->settings )->rows() as $id => $row ) {
			$text = match ( $row['status'] ) {
				/* translators: 1: name of a key, 2: where it was found. */
				'available'    => sprintf( __( 'key %1$s found (%2$s)', 'codebox' ), $row['key'], $row['source'] ),
				'not-required' => __( 'needs no key', 'codebox' ),
				/* translators: %s: name of a key. */
				'denied'       => Connectors::ai_is_on() ? sprintf( __( 'key %s may not go to the base URL of this provider', 'codebox' ), $row['key'] ) : __( 'AI is switched off on this site', 'codebox' ),
				/* translators: %s: name of a key. */
				default        => sprintf( __( 'key %s not found', 'codebox' ), $row['key'] ),
			};
			printf( '<li><strong>%s</strong>: %s</li>', esc_html( $id ), esc_html( $text ) );
		}
		echo '</ul>';
	}

	/** Prints the field of the default provider. */
	public function provider(): void {
		$stored = $this->settings->stored( Settings::DEFAULT_PROVIDER );
		printf( '<select id="%1$s" name="%1$s"><option value="">%2$s</option>', esc_attr( Settings::DEFAULT_PROVIDER ), esc_html__( 'None: a task must name one', 'codebox' ) );
		foreach ( ( new Providers( $this->settings ) )->all() as $id => $provider ) {
			if ( '' !== $provider->base_url ) {
				printf( '<option value="%1$s"%2$s>%1$s</option>', esc_attr( $id ), selected( $stored, $id, false ) );
			}
		}
		echo '</select>';
	}

	/** Prints the field of the default model. */
	public function model(): void {
		printf( '<input type="text" class="regular-text" id="%1$s" name="%1$s" value="%2$s" aria-describedby="%1$s-about">', esc_attr( Settings::DEFAULT_MODEL ), esc_attr( $this->settings->stored( Settings::DEFAULT_MODEL ) ) );
		$this->about_field( Settings::DEFAULT_MODEL, __( 'Model id as the provider names it. With a default model, a task that names no agent runs the built-in one.', 'codebox' ) );
	}

	/** Prints the field of the model providers that the administrator adds, as JSON. */
	public function providers(): void {
		$stored = $this->settings->providers();
		$this->text( Settings::PROVIDERS, [] === $stored ? '' : (string) wp_json_encode( $stored, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES ), __( 'A JSON object with one entry for each provider: its id, and an object with "api" (openai-chat or anthropic-messages) and "base_url", with "key_env" or "connector" if the provider needs a key, and optionally with "models", "context_tokens", "max_output_tokens" and "prices". A key goes only to a host that the operator allows for it. The help of this page has an example. Do not enter a key here.', 'codebox' ) );
	}

	/** Prints the field of the built-in agent's instructions. */
	public function instructions(): void {
		$this->text( Settings::INSTRUCTIONS, $this->settings->stored( Settings::INSTRUCTIONS ), __( 'Sent to the built-in agent with every task. The model provider receives this text.', 'codebox' ) );
	}

	/**
	 * Prints a multi-line text field.
	 *
	 * @param string $option Name of the option.
	 * @param string $value  Value of the field.
	 * @param string $about  Description below the field.
	 */
	private function text( string $option, string $value, string $about ): void {
		printf( '<textarea id="%1$s" name="%1$s" rows="6" class="large-text code" spellcheck="false" aria-describedby="%1$s-about">%2$s</textarea>', esc_attr( $option ), esc_textarea( $value ) );
		$this->about_field( $option, $about );
	}

	/**
	 * Prints the description of a field.
	 *
	 * @param string $option Name of the option.
	 * @param string $text   Text to print.
	 */
	private function about_field( string $option, string $text ): void {
		printf( '<p class="description" id="%s-about">%s</p>', esc_attr( $option ), esc_html( $text ) );
	}
}
