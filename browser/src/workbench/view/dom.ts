/**
 * Elements and messages. The page never creates elements from HTML strings.
 */
import type { Failure } from '../failure';
import { i18n } from '../i18n';

type Content = Node | string | null | false | undefined;
type Settings = Readonly< Record< string, string | number | boolean | null | undefined > > & { readonly on?: never };
type Listeners = { readonly [ Name in keyof HTMLElementEventMap ]?: ( event: HTMLElementEventMap[ Name ] ) => unknown };

let last = 0;

/** Returns an unused element id. */
export function unusedId( what: string ): string {
	last += 1;
	return `wp-codebox-${ what }-${ last }`;
}

/** Creates an element. Null and false leave an attribute out. */
export function el< Name extends keyof HTMLElementTagNameMap >( name: Name, settings: Settings = {}, ...content: Array< Content | readonly Content[] > ): HTMLElementTagNameMap[ Name ] {
	const element = document.createElement( name );
	for ( const [ attribute, value ] of Object.entries( settings ) ) {
		if ( null !== value && undefined !== value && false !== value ) {
			element.setAttribute( attribute, true === value ? '' : String( value ) );
		}
	}
	for ( const part of content.flat() as Content[] ) {
		if ( part ) {
			element.append( part );
		}
	}
	return element;
}

/** Adds listeners to an element and returns it. */
export function on< Target extends HTMLElement >( element: Target, listeners: Listeners ): Target {
	for ( const [ event, listener ] of Object.entries( listeners ) ) {
		element.addEventListener( event, listener as EventListener );
	}
	return element;
}

/** Creates a button. */
export function button( label: string, press: () => unknown, settings: Settings = {} ): HTMLButtonElement {
	return on( el( 'button', { type: 'button', class: 'button', ...settings }, label ), { click: () => press() } );
}

/** Shows a path or digest as code. */
export function code( value: string ): HTMLElement {
	return el( 'code', { class: 'wp-codebox-code', dir: 'ltr' }, value );
}

/** Shows a notice in the style of WordPress. */
export function notice( kind: 'info' | 'warning' | 'error' | 'success', ...content: Content[] ): HTMLElement {
	return el( 'div', { class: `notice inline notice-${ kind }`, role: 'error' === kind ? 'alert' : 'status' }, ...content );
}

/** Shows an error: the sentence, what to do, and the code to search for. */
export function problem( { code: name, message, hint }: Failure, ...more: Content[] ): HTMLElement {
	return notice(
		'error',
		el( 'p', {}, el( 'bdi', {}, message ), hint ? ' ' : null, hint ? el( 'bdi', {}, hint ) : null ),
		...more,
		el( 'p', { class: 'wp-codebox-error-code' }, i18n.__( 'Code:', 'codebox' ), ' ', code( name ) )
	);
}

/** Offers bytes as a download. */
export function download( name: string, bytes: Uint8Array, type: string ): void {
	const url = URL.createObjectURL( new Blob( [ bytes as Uint8Array< ArrayBuffer > ], { type } ) );
	const link = el( 'a', { href: url, download: name } );
	document.body.append( link );
	link.click();
	link.remove();
	setTimeout( () => URL.revokeObjectURL( url ), 10_000 );
}
