// Lists the visible elements of a document with their positions on the page, in document order.
((most) => {
	const step = (element) => {
		const same = [...element.parentElement.children].filter((one) => one.tagName === element.tagName);
		const tag = element.tagName.toLowerCase();
		return same.length > 1 ? `${tag}:nth-of-type(${same.indexOf(element) + 1})` : tag;
	};
	const selectorOf = (element) => {
		const parts = [];
		for (let at = element; at && at.parentElement && parts.length < 12; at = at.parentElement) {
			if (at.id && document.querySelectorAll(`#${CSS.escape(at.id)}`).length === 1) {
				parts.unshift(`#${CSS.escape(at.id)}`);
				return parts.join(' > ');
			}
			parts.unshift(step(at));
		}
		return parts.join(' > ');
	};
	const elements = [];
	let total = 0;
	for (const one of document.body ? document.body.querySelectorAll('*') : []) {
		const box = one.getBoundingClientRect();
		if (box.width <= 0 || box.height <= 0 || !one.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
		total++;
		if (elements.length >= most) continue;
		const text = [...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join(' ').replace(/\s+/g, ' ').trim();
		elements.push({
			selector: selectorOf(one).slice(0, 500),
			tag: one.tagName.toLowerCase().slice(0, 40),
			role: (one.getAttribute('role') || '').slice(0, 40),
			text: text.slice(0, 120),
			x: box.left + scrollX,
			y: box.top + scrollY,
			width: box.width,
			height: box.height,
		});
	}
	return {
		url: location.href.slice(0, 4000),
		title: document.title.slice(0, 300),
		viewport: { width: innerWidth, height: innerHeight },
		elements,
		total,
	};
})
