function checkStock(item) {
  if (item.left < 1) throw new Error('sold out');
}

export function order(items) {
  items.forEach(checkStock);
}

order([{left: 0}]);
