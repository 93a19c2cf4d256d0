/**
 * The site in a frame, with its address, reload, and the progress of the start.
 */
import type { PlaygroundClient, Progress } from '../../engine/api';
import { failure, type Failure } from '../failure';
import { i18n } from '../i18n';
import { button, el, on, problem } from './dom';

/** Returns the sentence for a stage of the start. */
function sentence( stage: Progress[ 'stage' ] | 'blueprint-ref' ): string {
	switch ( stage ) {
		case 'blueprint-ref':
			return i18n.__( 'Asking the site for the session…', 'codebox' );
		case 'download':
			return i18n.__( 'Downloading PHP and WordPress…', 'codebox' );
		case 'runtime':
			return i18n.__( 'Starting PHP…', 'codebox' );
		case 'files':
			return i18n.__( 'Unpacking WordPress…', 'codebox' );
		case 'install':
			return i18n.__( 'Installing WordPress…', 'codebox' );
		case 'roots':
			return i18n.__( 'Unpacking the code of this session…', 'codebox' );
		case 'blueprint':
			return i18n.__( 'Preparing the site…', 'codebox' );
		case 'open':
			return i18n.__( 'Opening the site…', 'codebox' );
		default:
			return i18n.__( 'The site runs in this page.', 'codebox' );
	}
}

export class SiteFrame {
	readonly element: HTMLElement;
	iframe: HTMLIFrameElement;
	private readonly cover: HTMLElement;
	private readonly bar: HTMLProgressElement;
	private readonly label: HTMLElement;
	private readonly address: HTMLInputElement;
	private readonly buttons: HTMLButtonElement[];
	private readonly box: HTMLElement;
	private client: PlaygroundClient | null = null;

	constructor( private readonly failed: ( thrown: unknown ) => void ) {
		this.bar = el( 'progress', { max: 1, value: 0, 'aria-label': i18n.__( 'Start of the site', 'codebox' ) } );
		this.label = el( 'p', { role: 'status' } );
		this.cover = el( 'div', { class: 'wp-codebox-cover' } );
		this.iframe = this.frame();
		this.box = el( 'div', { class: 'wp-codebox-frame-box' }, this.iframe, this.cover );
		this.address = el( 'input', { type: 'text', class: 'wp-codebox-address', dir: 'ltr', value: '/', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', 'aria-label': i18n.__( 'Address in the site', 'codebox' ), disabled: true } );
		this.buttons = [
			el( 'button', { type: 'submit', class: 'button', disabled: true }, i18n.__( 'Go', 'codebox' ) ),
			button( i18n.__( 'Reload', 'codebox' ), () => void this.reload(), { disabled: true } ),
			button( i18n.__( 'Dashboard', 'codebox' ), () => void this.go( '/wp-admin/' ), { disabled: true } ),
		];
		const form = on( el( 'form', { class: 'wp-codebox-bar' }, this.address, this.buttons ), {
			submit: ( event ) => {
				event.preventDefault();
				void this.go( this.address.value.startsWith( '/' ) ? this.address.value : '/' + this.address.value );
			},
		} );
		this.element = el( 'section', { class: 'wp-codebox-site', 'aria-label': i18n.__( 'Site', 'codebox' ) }, form, this.box );
	}

	/** Shows the progress of the start. */
	progress( stage: Progress[ 'stage' ] | 'blueprint-ref', fraction: number ): void {
		if ( ! this.bar.isConnected ) {
			this.cover.replaceChildren( this.label, this.bar );
			this.cover.hidden = false;
		}
		const text = sentence( stage );
		if ( text !== this.label.textContent ) {
			this.label.textContent = text;
		}
		this.bar.value = fraction;
	}

	/** Shows why the site does not run, in place of the frame. */
	failure( why: Failure, again: () => void ): void {
		this.cover.hidden = false;
		this.cover.replaceChildren( problem( why, el( 'p', {}, button( i18n.__( 'Try again', 'codebox' ), again ) ) ) );
		this.enable( false );
	}

	/** Replaces the frame by a fresh one, for another start. */
	reset(): void {
		const fresh = this.frame();
		this.iframe.replaceWith( fresh );
		this.iframe = fresh;
		this.client = null;
	}

	/** Shows the running site. */
	async connect( client: PlaygroundClient ): Promise< void > {
		this.client = client;
		this.cover.hidden = true;
		this.enable( true );
		await client.onNavigation( ( path ) => {
			if ( document.activeElement !== this.address ) {
				this.address.value = path;
			}
		} );
		this.address.value = await client.getCurrentURL();
	}

	/** Loads the shown document again. */
	async reload(): Promise< void > {
		if ( this.client ) {
			await this.go( await this.client.getCurrentURL() );
		}
	}

	private async go( path: string ): Promise< void > {
		try {
			await this.client?.goTo( path );
		} catch ( thrown ) {
			this.failed( failure( thrown ) );
		}
	}

	private frame(): HTMLIFrameElement {
		return el( 'iframe', { class: 'wp-codebox-frame', title: i18n.__( 'The WordPress of this browser session', 'codebox' ) } );
	}

	private enable( enabled: boolean ): void {
		[ this.address, ...this.buttons ].forEach( ( control ) => ( control.disabled = ! enabled ) );
	}
}
